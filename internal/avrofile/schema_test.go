package avrofile

import (
	"strings"
	"testing"

	"github.com/twmb/avro"
)

const (
	uint64Type = `{"type":"fixed","name":"weir.uint64","size":8}`
	pointType  = `{"type":"record","name":"a.Point","fields":[{"name":"X","type":"long"},{"name":"Y","type":"long"}]}`
	// another Point, and a Line of it
	point3Type = `{"type":"record","name":"a.Point","fields":[{"name":"X","type":"long"},{"name":"Y","type":"long"},{"name":"Z","type":"long"}]}`
	lineType   = `{"type":"record","name":"a.Line","fields":[{"name":"A","type":` + pointType + `},{"name":"B","type":"a.Point"}]}`
	line3Type  = `{"type":"record","name":"a.Line","fields":[{"name":"A","type":` + point3Type + `},{"name":"B","type":"a.Point"}]}`
	treeType   = `{"type":"record","name":"a.Tree","fields":[{"name":"Of","type":{"type":"array","items":"a.Tree"}},{"name":"At","type":["null",` + pointType + `]}]}`
	timeType   = `{"type":"long","logicalType":"timestamp-nanos"}`
)

// A type that stands in several columns is defined once; types that only share a name get one each.
func TestSchema(t *testing.T) {
	for _, c := range []struct {
		name  string
		types []string
		want  []string // the types of the fields
	}{
		{"plain", []string{`"long"`, timeType, `["null","string"]`}, nil},
		{"twice", []string{uint64Type, uint64Type, pointType, pointType}, []string{uint64Type, `"weir.uint64"`, pointType, `"a.Point"`}},
		{"inside another", []string{pointType, lineType}, []string{pointType,
			`{"type":"record","name":"a.Line","fields":[{"name":"A","type":"a.Point"},{"name":"B","type":"a.Point"}]}`}},
		{"defined inside another", []string{lineType, pointType}, []string{lineType, `"a.Point"`}},
		{"the same name", []string{pointType, point3Type, point3Type}, []string{pointType, strings.Replace(point3Type, "a.Point", "a.Point__2", 1),
			strings.Replace(point3Type, "a.Point", "a.Point__3", 1)}},
		{"of something else", []string{lineType, line3Type}, []string{lineType,
			strings.NewReplacer("a.Point", "a.Point__2", "a.Line", "a.Line__2").Replace(line3Type)}},
		{"of itself", []string{treeType, treeType, pointType}, []string{treeType, `"a.Tree"`, `"a.Point"`}},
		{"of itself and something else", []string{point3Type, treeType}, []string{point3Type, strings.ReplaceAll(treeType, "a.Point", "a.Point__2")}},
		{"the row's own name", []string{strings.Replace(pointType, "a.Point", RowName, 1)}, []string{strings.Replace(pointType, "a.Point", RowName+"__2", 1)}},
		{"a name with a number", []string{pointType, strings.Replace(pointType, "a.Point", "a.Point__2", 1), point3Type},
			[]string{pointType, strings.Replace(pointType, "a.Point", "a.Point__2", 1), strings.Replace(point3Type, "a.Point", "a.Point__3", 1)}},
		{"an alias", []string{`{"type":"record","name":"a.B","fields":[{"name":"X","type":"int","aliases":["Y"]}]}`}, nil},
	} {
		if c.want == nil {
			c.want = c.types
		}
		var columns []Column
		var fields []string
		for i := range c.types {
			name := string(rune('a' + i))
			columns = append(columns, Column{name, c.types[i]})
			fields = append(fields, `{"name":"`+name+`","type":`+c.want[i]+`}`)
		}
		got, err := Schema(columns)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"type":"record","name":"weir.row","fields":[` + strings.Join(fields, ",") + `]}`
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, want)
		}
		if _, err := avro.Parse(got); err != nil {
			t.Errorf("%s: another library reads %s: %v", c.name, got, err)
		}
	}
	if _, err := Schema([]Column{{"a", "long"}}); err == nil {
		t.Error("what is no JSON is a schema")
	}
}
