package trial

import (
	"fmt"
	"testing"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/weirtest"
)

// TestTopicKeepsWhatSinksMust: the broker's sink is one as users write them, so it passes what theirs have to pass.
func TestTopicKeepsWhatSinksMust(t *testing.T) {
	weirtest.TestSink(t, weirtest.SinkKit[string]{Record: func(i int) string { return fmt.Sprint("line ", i) }, Open: func(testing.TB) weirtest.Outside[string] {
		b := newBroker()
		return weirtest.Outside[string]{Sink: func() weir.Sink[string] { return topic{b, newFaults(nil)}.sink() }, Visible: b.read, Left: b.left}
	}})
}
