package bench;

/**
 * The events of Nexmark, an auction house: the same as those of examples/nexmark, bit by bit. An event is a function of its
 * number n and of nothing else. Of 50 events the first is a person, the next three are auctions, and the rest bids.
 */
public final class Events {
    static final int PERSON = 0, AUCTION = 1, BID = 2;

    private static final long FIRST_PERSON = 1000, FIRST_AUCTION = 1000, FIRST_CATEGORY = 10, CATEGORIES = 5;
    private static final long BLOCK = 50, PERSONS_IN_BLOCK = 1, AUCTIONS_IN_BLOCK = 3;
    private static final long HOT_EVERY = 100, HOT_AUCTIONS = 2, HOT_SELLERS = 4, HOT_BIDDERS = 4;
    private static final long ACTIVE_PERSONS = 1000, OPEN_AUCTIONS = 100, PERSONS_AHEAD = 10, AUCTIONS_AHEAD = 10;
    private static final long PER_SECOND = 100_000; // events in a second of event time
    private static final double PRICE_MAGNITUDE = 6;

    private static final String[] STATES = "AZ,CA,ID,OR,WA,WY".split(",");
    private static final String[] CITIES =
            "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(",");
    private static final String[] FIRST_NAMES = "Peter,Paul,Luke,John,Saul,Vicky,Kate,Julie,Sarah,Deiter,Walter".split(",");
    private static final String[] LAST_NAMES = "Shultz,Abrams,Spencer,White,Bartels,Walton,Smith,Jones,Noris".split(",");
    private static final String[] CHANNELS = "Google,Facebook,Baidu,Apple".split(",");
    private static final String[] PADS = texts(1_000_000, 40, "", "");
    private static final String[] DESCRIPTIONS = texts(2_000_000, 200, "", "");
    private static final String[] URLS = texts(3_000_000, 5, "https://www.nexmark.com/", "/item.htm?query=1");

    /** Public fields and a constructor without parameters: what Flink's serializer of POJOs asks for. */
    public static class Event {
        public int type;
        public Person person;
        public Auction auction;
        public Bid bid;

        long millis() { return type == BID ? bid.millis : type == AUCTION ? auction.millis : person.millis; }
    }

    public static class Person {
        public long id;
        public String name, email, card, city, state;
        public long millis;
        public String extra;
    }

    public static class Auction {
        public long id;
        public String item, description;
        public long initialBid, reserve, millis, expires, seller, category;
        public String extra;
    }

    public static class Bid {
        public long auction, bidder, price;
        public String channel, url;
        public long millis;
        public String extra;
    }

    private Events() {}

    /** Event number n, from 0. */
    static Event at(long n) {
        Event e = new Event();
        long millis = n * 1000 / PER_SECOND, offset = n % BLOCK;
        if (offset < PERSONS_IN_BLOCK) {
            e.type = PERSON;
            e.person = person(n, millis);
        } else if (offset < PERSONS_IN_BLOCK + AUCTIONS_IN_BLOCK) {
            e.type = AUCTION;
            e.auction = auction(n, millis);
        } else {
            e.type = BID;
            e.bid = bid(n, millis);
        }
        return e;
    }

    private static Person person(long n, long millis) {
        Person p = new Person();
        p.id = FIRST_PERSON + lastPerson(n);
        p.name = pick(FIRST_NAMES, n, 0) + " " + pick(LAST_NAMES, n, 1);
        p.email = pick(PADS, n, 2).substring(0, 7) + "@" + pick(PADS, n, 3).substring(0, 5) + ".com";
        p.card = Long.toString(1_000_000_000_000_000L + below(n, 4, 9_000_000_000_000_000L));
        p.city = pick(CITIES, n, 5);
        p.state = pick(STATES, n, 6);
        p.millis = millis;
        p.extra = pick(PADS, n, 7);
        return p;
    }

    private static Auction auction(long n, long millis) {
        Auction a = new Auction();
        a.id = FIRST_AUCTION + lastAuction(n);
        a.item = pick(PADS, n, 0).substring(0, 20);
        a.description = pick(DESCRIPTIONS, n, 1);
        a.initialBid = price(n, 2);
        a.reserve = a.initialBid + price(n, 3);
        a.millis = millis;
        a.expires = millis + 1 + below(n, 4, Math.max(1, 2 * OPEN_AUCTIONS * BLOCK / AUCTIONS_IN_BLOCK * 1000 / PER_SECOND));
        boolean hot = below(n, 5, HOT_SELLERS) > 0;
        a.seller = FIRST_PERSON + (hot ? lastPerson(n) / HOT_EVERY * HOT_EVERY : somePerson(n, 6));
        a.category = FIRST_CATEGORY + below(n, 7, CATEGORIES);
        a.extra = pick(PADS, n, 8);
        return a;
    }

    private static Bid bid(long n, long millis) {
        Bid b = new Bid();
        boolean hotAuction = below(n, 0, HOT_AUCTIONS) > 0, hotBidder = below(n, 2, HOT_BIDDERS) > 0;
        b.auction = FIRST_AUCTION + (hotAuction ? lastAuction(n) / HOT_EVERY * HOT_EVERY : someAuction(n, 1));
        b.bidder = FIRST_PERSON + (hotBidder ? lastPerson(n) / HOT_EVERY * HOT_EVERY + 1 : somePerson(n, 3));
        b.price = price(n, 4);
        b.channel = pick(CHANNELS, n, 5);
        b.url = pick(URLS, n, 6);
        b.millis = millis;
        b.extra = pick(PADS, n, 7);
        return b;
    }

    // ---- who and what, counted from 0

    /** The person that was new last, at event n or before. */
    private static long lastPerson(long n) { return n / BLOCK * PERSONS_IN_BLOCK + Math.min(n % BLOCK, PERSONS_IN_BLOCK - 1); }

    /** The auction that was new last, at event n or before; -1 before the first. */
    private static long lastAuction(long n) {
        long inBlock = Math.min(n % BLOCK - PERSONS_IN_BLOCK, AUCTIONS_IN_BLOCK - 1);
        return n / BLOCK * AUCTIONS_IN_BLOCK + Math.max(inBlock, -1);
    }

    private static long somePerson(long n, int k) {
        long persons = lastPerson(n) + 1, active = Math.min(persons, ACTIVE_PERSONS);
        return persons - active + below(n, k, active + PERSONS_AHEAD);
    }

    private static long someAuction(long n, int k) {
        long last = lastAuction(n), first = Math.max(last - OPEN_AUCTIONS, 0);
        return first + below(n, k, last - first + 1 + AUCTIONS_AHEAD);
    }

    /** A price in cents. (10^x as e^(x ln 10), as on the other side: faster than Math.pow, and equal to the cent.) */
    private static long price(long n, int k) {
        double unit = (random(n, k) >>> 11) * 0x1.0p-53;
        return (long) Math.floor(Math.exp(unit * PRICE_MAGNITUDE * Math.log(10)) * 100.0 + 0.5);
    }

    // ---- random numbers

    /** SplitMix64. */
    static long mix(long z) {
        z += 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    /** The k-th random number of event n, k below 16. */
    private static long random(long n, int k) { return mix(n * 16 + k); }

    private static long below(long n, int k, long m) { return Long.remainderUnsigned(random(n, k), m); }

    private static String pick(String[] from, long n, int k) { return from[(int) below(n, k, from.length)]; }

    private static String[] texts(long seed, int length, String before, String behind) {
        String[] all = new String[64];
        for (int i = 0; i < all.length; i++) {
            StringBuilder text = new StringBuilder(before);
            for (int j = 0; j < length; j++) text.append((char) ('a' + Long.remainderUnsigned(mix((seed + i) * 1000 + j), 26)));
            all[i] = text.append(behind).toString();
        }
        return all;
    }
}
