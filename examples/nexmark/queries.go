package main

import "github.com/weirstream/weir"

// query appends a query to the events, and a sink that sums up.
type query func(events weir.Stream[Event], into *total)

// queries are all queries, by name.
var queries = map[string]query{"q0": q0, "q1": q1, "q2": q2, "q3": q3}

// q0 is every event as it is: what the engine itself costs.
func q0(events weir.Stream[Event], into *total) {
	events.To(tally[Event]{into, value}).Name("sink")
}

// value is what q0 sums up.
func value(e Event) int64 {
	if e.IsBid() {
		return e.Bid.Price
	}
	return 1
}

// q1 is every bid, its price in euros.
func q1(events weir.Stream[Event], into *total) {
	events.Filter(func(e Event) bool { return e.IsBid() }).Name("bids").
		Map(func(e Event) Bid {
			e.Bid.Price = int64(float64(e.Bid.Price) * 0.908)
			return e.Bid
		}).Name("in euros").
		To(tally[Bid]{into, func(b Bid) int64 { return b.Price }}).Name("sink")
}

// offer is what q2 selects of a bid.
type offer struct{ Auction, Price int64 }

// q2 is the bids on one auction of 123.
func q2(events weir.Stream[Event], into *total) {
	events.Filter(func(e Event) bool { return e.IsBid() && e.Bid.Auction%123 == 0 }).Name("bids").
		Map(func(e Event) offer { return offer{e.Bid.Auction, e.Bid.Price} }).Name("offers").
		To(tally[offer]{into, func(o offer) int64 { return o.Auction + o.Price }}).Name("sink")
}

// seen is what q3 needs of a person.
type seen struct {
	ID                int64
	Name, City, State string
}

// sale is what q3 needs of an auction.
type sale struct{ Seller, Auction int64 }

// local is what q3 emits: somebody sells something.
type local struct {
	Name, City, State string
	Auction           int64
}

// q3 is who, in Oregon, Idaho or California, sells in category 10. Whichever comes first of a person and its auctions waits
// for the other, for ever.
func q3(events weir.Stream[Event], into *total) {
	persons := events.Filter(func(e Event) bool {
		return e.Person != nil && (e.Person.State == "OR" || e.Person.State == "ID" || e.Person.State == "CA")
	}).Name("persons").Map(func(e Event) seen {
		return seen{e.Person.ID, e.Person.Name, e.Person.City, e.Person.State}
	})
	auctions := events.Filter(func(e Event) bool { return e.Auction != nil && e.Auction.Category == 10 }).Name("auctions").
		Map(func(e Event) sale { return sale{e.Auction.Seller, e.Auction.ID} })
	persons.KeyBy(func(p seen) int64 { return p.ID }).
		Connect(auctions.KeyBy(func(s sale) int64 { return s.Seller })).
		Process(&join{}).UID("q3").Name("join").
		To(tally[local]{into, func(l local) int64 { return l.Auction }}).Name("sink")
}

// join is the function of q3. Its key is a person.
type join struct {
	Person   weir.Value[seen] `state:"person,immutable"`
	Auctions weir.List[int64] `state:"auctions"`
}

// Process1 takes the person.
func (j *join) Process1(_ *weir.KeyedContext[int64], p seen, out weir.Out[local]) error {
	j.Person.Set(p)
	for auction := range j.Auctions.All() {
		out.Emit(local{p.Name, p.City, p.State, auction})
	}
	return nil
}

// Process2 takes an auction of the person's.
func (j *join) Process2(_ *weir.KeyedContext[int64], s sale, out weir.Out[local]) error {
	j.Auctions.Add(s.Auction)
	if p, ok := j.Person.Lookup(); ok {
		out.Emit(local{p.Name, p.City, p.State, s.Auction})
	}
	return nil
}
