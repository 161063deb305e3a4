package rest

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/stats"
)

// TestThrowable: the template's strings are replaced, each with its own length, and nothing else changes. That Java reads it, make
// test-flink shows.
func TestThrowable(t *testing.T) {
	for _, text := range []string{"", "a: b", "two\nlines", "grüße \U0001F30A \x00", strings.Repeat("x", shortMost), strings.Repeat("y", shortMost+1)} {
		b := throwable("a.B", text, "a.B: "+text)
		for _, placeholder := range []string{"@class@", "@message@", "@stack@"} {
			if bytes.Contains(b, []byte(placeholder)) {
				t.Errorf("%.20q: %s is left", text, placeholder)
			}
		}
		if !bytes.Contains(b, javaString(text)) || !bytes.Contains(b, javaString("a.B: "+text)) {
			t.Errorf("%.20q: the text is not there", text)
		}
	}
}

func TestJavaStrings(t *testing.T) {
	for text, want := range map[string]string{
		"":           "t\x00\x00",
		"ab":         "t\x00\x02ab",
		"\x00":       "t\x00\x02\xC0\x80",
		"ü":          "t\x00\x02\xC3\xBC",
		"\u20AC":     "t\x00\x03\xE2\x82\xAC",
		"\U0001F30A": "t\x00\x06\xED\xA0\xBC\xED\xBC\x8A",
		"\xFF":       "t\x00\x03\xEF\xBF\xBD",
	} {
		if got := string(javaString(text)); got != want {
			t.Errorf("%q is written as %q; want %q", text, got, want)
		}
	}
	long := javaString(strings.Repeat("x", shortMost+1))
	if long[0] != tcLongString || binary.BigEndian.Uint64(long[1:]) != shortMost+1 || len(long) != 9+shortMost+1 {
		t.Errorf("a long one begins with % x", long[:10])
	}
}

func TestPercentiles(t *testing.T) {
	if s := statsOf(stats.Of(19, 13, 16, 15)); s.Min != 13 || s.Max != 19 || s.Avg != 15 || s.P50 != 15.5 || s.P90 != 19 {
		t.Errorf("%+v", s)
	}
	for p, want := range map[Percentile]string{15.5: "15.5", 7: "7.0", Percentile(math.NaN()): `"NaN"`} {
		if b, _ := p.MarshalJSON(); string(b) != want {
			t.Errorf("%s; want %s", b, want)
		}
	}
}
