package state

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weirstream/weir/internal/avrofile"
	"github.com/weirstream/weir/internal/snapshot"
)

// Rows are one state of a snapshot as a canonical savepoint has it (docs/format/savepoint.md): a file of rows that every
// backend writes and reads alike, and every Avro reader too. They are written once, by any one goroutine, before the snapshot
// is released.
type Rows struct {
	schema  snapshot.StateSchema
	columns []avrofile.Column
	mode    snapshot.Mode
	keyed   bool
	ttl     time.Duration
	write   func(*avrofile.Writer) error

	index []byte
	count int64
}

// Name is the name of the state.
func (r *Rows) Name() string { return r.schema.Name }

// Handle is, after WriteTo, what the metadata says of the rows. Range and files are for the caller to fill in.
func (r *Rows) Handle() snapshot.RowsHandle {
	return snapshot.RowsHandle{Name: r.schema.Name, Keyed: r.keyed, Mode: r.mode, Count: r.count}
}

// Index is, after WriteTo, the bytes of the file's index, which becomes a file beside it.
func (r *Rows) Index() []byte { return r.index }

// WriteTo writes the file of rows.
func (r *Rows) WriteTo(w io.Writer) (n int64, err error) {
	schema, err := avrofile.Schema(r.columns)
	if err != nil {
		return 0, r.fail(err)
	}
	f, err := avrofile.NewWriter(w, schema, r.properties())
	if err == nil {
		err = r.write(f)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return f.Size(), r.fail(err)
	}
	r.index, r.count = f.Index(), f.Rows()
	return f.Size(), nil
}

func (r *Rows) fail(err error) error { return fmt.Errorf("state %q: %w", r.schema.Name, err) }

// The properties by which a file says what state it has. A restore goes by them, not by the schema of the rows, in which types
// may have other names.
const (
	nameProperty   = "weir.state"
	kindProperty   = "weir.kind"
	keyProperty    = "weir.key"
	mapKeyProperty = "weir.mapKey"
	valueProperty  = "weir.value"
	ttlProperty    = "weir.ttl" // nanoseconds; only where rows have an expiry time
)

func (r *Rows) properties() []avrofile.Property {
	all := []avrofile.Property{{Name: nameProperty, Value: r.schema.Name}, {Name: kindProperty, Value: r.schema.Kind}}
	for _, p := range []avrofile.Property{{Name: keyProperty, Value: r.schema.Key}, {Name: mapKeyProperty, Value: r.schema.MapKey}, {Name: valueProperty, Value: r.schema.Value}} {
		if p.Value != "" {
			all = append(all, p)
		}
	}
	if r.ttl > 0 {
		all = append(all, avrofile.Property{Name: ttlProperty, Value: strconv.FormatInt(int64(r.ttl), 10)})
	}
	return all
}

// rowColumns are the fields of the rows of a state.
func rowColumns(s snapshot.StateSchema, ttl time.Duration) (all []avrofile.Column) {
	add := func(name, schema string) { all = append(all, avrofile.Column{Name: name, Type: schema}) }
	if s.Key != "" {
		add("hash", hashType)
		add("key", s.Key)
	}
	switch s.Kind {
	case KindTimers:
		add("time", instantType)
		add("event", `"boolean"`)
		return all
	case KindList:
		add("index", `"long"`)
	}
	if s.MapKey != "" {
		add("mapKey", s.MapKey)
	}
	add("value", s.Value)
	if ttl > 0 {
		add("expires", instantType)
	}
	return all
}

// RowsFile is a file of rows that was opened to be restored.
type RowsFile struct {
	*avrofile.Reader
	schema snapshot.StateSchema
	ttl    time.Duration // 0: rows have no expiry time
}

// OpenRows opens a file of rows, whose index was read whole.
func OpenRows(r io.ReaderAt, size int64, index []byte) (*RowsFile, error) {
	reader, err := avrofile.Open(r, size, index)
	if err != nil {
		return nil, damaged(err)
	}
	f := &RowsFile{Reader: reader, schema: snapshot.StateSchema{
		Name: reader.Property(nameProperty), Kind: reader.Property(kindProperty), Key: reader.Property(keyProperty),
		MapKey: reader.Property(mapKeyProperty), Value: reader.Property(valueProperty),
	}}
	if ttl := reader.Property(ttlProperty); ttl != "" {
		n, err := strconv.ParseInt(ttl, 10, 64)
		if err != nil || n <= 0 {
			return nil, corrupt("a time to live of %q", ttl)
		}
		f.ttl = time.Duration(n)
	}
	return f, nil
}

// damaged marks what is damaged in a file of rows as what is damaged in any state file.
func damaged(err error) error {
	if errors.Is(err, avrofile.ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}
