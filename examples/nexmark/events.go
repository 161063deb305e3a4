package main

import "strconv"

// The proportions of the public specification: of 50 events the first is a person, the next three are auctions, and the rest
// bids.
const (
	block          = 50
	personsInBlock = 1
	auctionsBlock  = 3
)

const (
	firstPerson, firstAuction, firstCategory = 1000, 1000, 10
	categories                               = 5

	hotEvery       = 100 // one id in so many is hot
	hotAuctions    = 2   // all but one of so many bids go to a hot auction
	hotSellers     = 4   // all but one of so many auctions are a hot seller's
	hotBidders     = 4   // all but one of so many bids are a hot bidder's
	activePersons  = 1000
	openAuctions   = 100
	personsAhead   = 10 // ids that are used this long before they are issued
	auctionsAhead  = 10
	priceMagnitude = 6 // prices are from 1 to 10^6, evenly by magnitude
)

// Events computes events, of which so many happen in a second of event time: event number n, from 0. An event is a function
// of its number and of nothing else, and the random numbers in it are hashes of that number: that makes a generator that
// needs no state, and that other languages can follow bit by bit.
func Events(perSecond int64) func(n int64) Event {
	return func(n int64) (e Event) {
		millis := n * 1000 / perSecond
		switch offset := n % block; {
		case offset < personsInBlock:
			e.Person = newPerson(n, millis)
		case offset < personsInBlock+auctionsBlock:
			e.Auction = newAuction(n, millis, perSecond)
		default:
			e.Bid.fill(n, millis)
		}
		return e
	}
}

func newPerson(n, millis int64) *Person {
	return &Person{
		ID:     firstPerson + lastPerson(n),
		Name:   pick(firstNames[:], n, 0) + " " + pick(lastNames[:], n, 1),
		Email:  pick(pads[:], n, 2)[:7] + "@" + pick(pads[:], n, 3)[:5] + ".com",
		Card:   strconv.FormatInt(1_000_000_000_000_000+below(n, 4, 9_000_000_000_000_000), 10),
		City:   pick(cities[:], n, 5),
		State:  pick(states[:], n, 6),
		Millis: millis,
		Extra:  pick(pads[:], n, 7),
	}
}

func newAuction(n, millis, perSecond int64) *Auction {
	a := &Auction{
		ID:          firstAuction + lastAuction(n),
		Item:        pick(pads[:], n, 0)[:20],
		Description: pick(descriptions[:], n, 1),
		InitialBid:  price(n, 2),
		Millis:      millis,
		Expires:     millis + 1 + below(n, 4, max(1, 2*openAuctions*block/auctionsBlock*1000/perSecond)),
		Seller:      firstPerson + seller(n),
		Category:    firstCategory + below(n, 7, categories),
		Extra:       pick(pads[:], n, 8),
	}
	a.Reserve = a.InitialBid + price(n, 3)
	return a
}

// fill makes b the bid of event n. The price comes first: it takes longest, and the rest does not wait for it.
func (b *Bid) fill(n, millis int64) {
	b.Price = price(n, 4)
	b.Auction = firstAuction + auctionOfBid(n)
	b.Bidder = firstPerson + bidder(n)
	b.Channel = pick(channels[:], n, 5)
	b.URL = pick(urls[:], n, 6)
	b.Millis = millis
	b.Extra = pick(pads[:], n, 7)
}

// ---- who and what, counted from 0

func seller(n int64) int64 {
	if below(n, 5, hotSellers) > 0 {
		return lastPerson(n) / hotEvery * hotEvery
	}
	return somePerson(n, 6)
}

func bidder(n int64) int64 {
	if below(n, 2, hotBidders) > 0 {
		return lastPerson(n)/hotEvery*hotEvery + 1
	}
	return somePerson(n, 3)
}

func auctionOfBid(n int64) int64 {
	if below(n, 0, hotAuctions) > 0 {
		return lastAuction(n) / hotEvery * hotEvery
	}
	return someAuction(n, 1)
}

// lastPerson is the person that was new last, at event n or before.
func lastPerson(n int64) int64 {
	return n/block*personsInBlock + min(n%block, personsInBlock-1)
}

// lastAuction is the auction that was new last, at event n or before; -1 before the first.
func lastAuction(n int64) int64 {
	inBlock := min(n%block-personsInBlock, auctionsBlock-1)
	return n/block*auctionsBlock + max(inBlock, -1)
}

// somePerson is one of those that were new lately, or soon will be.
func somePerson(n int64, k int) int64 {
	persons := lastPerson(n) + 1
	if persons < activePersons {
		return below(n, k, persons+personsAhead)
	}
	return persons - activePersons + below(n, k, activePersons+personsAhead) // divides by a constant
}

// someAuction is one of those that are open, or soon will be.
func someAuction(n int64, k int) int64 {
	last := lastAuction(n)
	if last < openAuctions {
		return below(n, k, last+1+auctionsAhead)
	}
	return last - openAuctions + below(n, k, openAuctions+1+auctionsAhead)
}

// ---- random numbers

// random is the k-th random number of event n, k below 16.
func random(n int64, k int) uint64 { return mix(uint64(n)*16 + uint64(k)) }

// below is the k-th random number of event n, below m.
func below(n int64, k int, m int64) int64 { return int64(random(n, k) % uint64(m)) }

// pick takes one of some texts. Where these are a whole array, the compiler knows their number, and does not divide.
func pick(from []string, n int64, k int) string { return from[below(n, k, int64(len(from)))] }

// mix is splitmix64.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// ---- texts

var (
	states     = [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	cities     = [...]string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	firstNames = [...]string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = [...]string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	channels   = [...]string{"Google", "Facebook", "Baidu", "Apple"}

	pads         = texts(1_000_000, 40, "", "")
	descriptions = texts(2_000_000, 200, "", "")
	urls         = texts(3_000_000, 5, "https://www.nexmark.com/", "/item.htm?query=1")
)

// texts are 64 random texts.
func texts(seed uint64, length int, before, behind string) (all [64]string) {
	for i := range all {
		text := make([]byte, length)
		for j := range text {
			text[j] = 'a' + byte(mix((seed+uint64(i))*1000+uint64(j))%26)
		}
		all[i] = before + string(text) + behind
	}
	return all
}
