package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// typeMost is how much of a type a table shows, in characters.
const typeMost = 72

// short cuts a long type.
func short(s string) string {
	if r := []rune(s); len(r) > typeMost {
		return string(r[:typeMost-3]) + "..."
	}
	return s
}

// number is a number, or a dash where it is not known.
func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// size is a number of bytes for people.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/(1<<10), 0
	for ; f >= 1<<10; i++ {
		f /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// table is lines of cells.
type table struct {
	buf bytes.Buffer
	*tabwriter.Writer
}

func newTable() *table {
	t := &table{}
	t.Writer = tabwriter.NewWriter(&t.buf, 0, 1, 2, ' ', 0)
	return t
}

// line writes one line of cells.
func (t *table) line(cells ...string) { fmt.Fprintln(t.Writer, strings.Join(cells, "\t")) }

// text is the table, without spaces at the ends of lines.
func (t *table) text() string {
	_ = t.Flush() // into memory
	var b strings.Builder
	for line := range strings.Lines(t.buf.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// WriteText writes the summary for people.
func (s *Summary) WriteText(w io.Writer) error {
	var b strings.Builder
	head := newTable()
	head.line("Path", s.Path)
	head.line("Job", fmt.Sprintf("%s (%s), run %d", s.JobName, s.Job, s.Run))
	head.line("Snapshot", fmt.Sprintf("%s %d, %s, taken %s", s.Kind, s.ID, s.Format, s.Taken.Format("2006-01-02 15:04:05 MST")))
	head.line("Size", s.Totals.text())
	b.WriteString(head.text())
	for i := range s.Operators {
		b.WriteString("\n" + s.Operators[i].text())
	}
	if len(s.Hooks) > 0 {
		t := newTable()
		for _, h := range s.Hooks {
			t.line("  "+h.ID, size(h.Bytes))
		}
		b.WriteString("\nMaster hooks\n" + t.text())
	}
	if len(s.InFlight) > 0 {
		t := newTable()
		t.line("  EDGE", "RECORDS", "BYTES", "TYPE")
		for _, f := range s.InFlight {
			t.line("  "+f.Edge, fmt.Sprint(f.Records), fmt.Sprint(f.Bytes), short(f.Record))
		}
		b.WriteString("\nRecords in flight\n" + t.text())
	}
	for _, p := range s.Problems {
		b.WriteString("\nNot readable: " + p + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Totals) text() string {
	text := fmt.Sprintf("%s in %d files", size(t.Bytes), t.Files)
	if t.New != t.Bytes {
		text += fmt.Sprintf(", of which %s are new", size(t.New))
	}
	if t.Outside > 0 {
		text += fmt.Sprintf("; %d files with %s lie outside of the directory, which cannot be moved without them", t.Outside, size(t.OutsideBytes))
	}
	return text
}

// title names an operator and says how far it was.
func (o *Operator) title() string {
	text := "Operator " + o.UID
	if o.Name != "" && o.Name != o.UID {
		text += " (" + o.Name + ")"
	}
	text += fmt.Sprintf(": parallelism %d", o.Parallelism)
	switch {
	case o.Finished:
		return text + ", had finished"
	case o.Ended > 0:
		text += fmt.Sprintf(", %d of them had ended", o.Ended)
	}
	if o.Watermark != "none" {
		text += ", watermark " + o.Watermark
	}
	return text
}

func (o *Operator) text() string {
	var b strings.Builder
	b.WriteString(o.title() + "\n")
	if o.KeyedBytes != nil {
		fmt.Fprintf(&b, "  by key: %s keys, %s\n", number(o.Keys), size(*o.KeyedBytes))
	}
	if o.Coordinator != nil {
		fmt.Fprintf(&b, "  coordinator: %s\n", size(*o.Coordinator))
	}
	if len(o.States) > 0 {
		t := newTable()
		t.line("  STATE", "KIND", "ENTRIES", "BYTES", "TYPE")
		for i := range o.States {
			s := &o.States[i]
			t.line("  "+s.Name, s.kind(), number(s.Entries), number(s.Bytes), s.typ())
		}
		b.WriteString(t.text())
	}
	for _, split := range o.Splits {
		fmt.Fprintf(&b, "  split %s\n", split)
	}
	if o.SplitsMore > 0 {
		fmt.Fprintf(&b, "  and %d splits more\n", o.SplitsMore)
	}
	return b.String()
}

// kind is the kind of the state, and how long it lives.
func (s *State) kind() string {
	if s.TTL != "" {
		return s.Kind + ", ttl " + s.TTL
	}
	return s.Kind
}

// typ is the types of the state: key -> [map key ->] value.
func (s *State) typ() string {
	var parts []string
	for _, t := range []string{s.Key, s.MapKey, s.Value} {
		if t != "" {
			parts = append(parts, short(t))
		}
	}
	return strings.Join(parts, " -> ")
}

// WriteText writes the difference for people: what differs, then what is the same.
func (d *Difference) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", d.Before, d.After)
	t := newTable()
	t.line("", "", "ENTRIES", "BYTES", "")
	for i := range d.Operators {
		d.Operators[i].lines(t)
	}
	b.WriteString(t.text())
	fmt.Fprintf(&b, "in all %s -> %s; ", size(*d.Bytes.Before), size(*d.Bytes.After))
	if d.SameShape() {
		b.WriteString("the shape is the same\n")
	} else {
		b.WriteString("the shape differs\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// signs stand in front of what has changed, as with diff.
var signs = map[Change]string{Same: "  ", Added: "+ ", Removed: "- ", Migrates: "~ ", Incompatible: "! "}

func (o *OperatorDiff) lines(t *table) {
	note := ""
	if a, b := number(o.Parallelism.Before), number(o.Parallelism.After); a != b && o.Change == Same {
		note = fmt.Sprintf("parallelism %s -> %s", a, b)
	}
	t.line(signs[o.Change]+"operator "+o.UID, "", "", "", cmp.Or(note, changeText(o.Change)))
	if o.KeyedBytes.Before != nil || o.KeyedBytes.After != nil {
		t.line("    by key", "", o.Keys.text(), o.KeyedBytes.text(), "")
	}
	for _, s := range o.States {
		t.line(signs[s.Change]+"  "+s.Name, s.Kind, s.Entries.text(), s.Bytes.text(),
			strings.TrimSuffix(changeText(s.Change)+": "+strings.Join(s.What, "; "), ": "))
	}
}

func changeText(c Change) string {
	if c == Same {
		return ""
	}
	return string(c)
}

// text is both numbers, or one where they are equal.
func (a Amount) text() string {
	before, after := number(a.Before), number(a.After)
	if before == after {
		return before
	}
	return before + " -> " + after
}

// WriteText writes the verdict for people.
func (v *Verdict) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, f := range v.Faults {
		fmt.Fprintf(&b, "fault: %v\n", f)
	}
	for _, name := range v.Strangers {
		fmt.Fprintf(&b, "stranger: %s is not of this snapshot; nothing reads it\n", name)
	}
	fmt.Fprintf(&b, "%d files with %s, and %d states within the metadata, were read: ", v.Files, size(v.Bytes), v.Inline)
	if len(v.Faults) == 0 {
		b.WriteString("all is as it was written\n")
	} else {
		fmt.Fprintf(&b, "%d faults\n", len(v.Faults))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
