package main

// Kind says what an Event is.
type Kind uint8

const (
	PersonEvent Kind = iota
	AuctionEvent
	BidEvent
)

// Event is something that happened at the auction house. Of 50 events 46 are bids, so the bid lies in the event itself; a
// person or an auction lies behind a pointer, which is nil in all other events.
type Event struct {
	Kind    Kind
	Bid     Bid
	Person  *Person
	Auction *Auction
}

// Person is somebody new.
type Person struct {
	ID                             int64
	Name, Email, Card, City, State string
	Millis                         int64 // event time
	Extra                          string
}

// Auction is a new auction. Prices are in cents.
type Auction struct {
	ID                  int64
	Item, Description   string
	InitialBid, Reserve int64
	Millis, Expires     int64 // event time
	Seller, Category    int64
	Extra               string
}

// Bid is an offer in an auction. Its price is in cents.
type Bid struct {
	Auction, Bidder, Price int64
	Channel, URL           string
	Millis                 int64 // event time
	Extra                  string
}
