package state_test

import (
	"database/sql"
	"errors"
	"image"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/codec"
	"github.com/weirstream/weir/internal/base"
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/snapshot"
	"github.com/weirstream/weir/internal/state"
)

// Types as older and newer versions of a program have them.
type (
	flag            bool
	metres          float64
	label           string
	serial          int64
	digest          [4]byte
	spot            struct{ X, Y int }      // as image.Point
	box             struct{ Min, Max spot } // as image.Rectangle
	nullable[T any] struct {                // as sql.Null
		V     T
		Valid bool
	}
	paired[A, B any] struct {
		First  A
		Second B
	}
	holder[T any] struct {
		Of  T
		Tag int8
	}
	heldMore struct { // as holder[*big.Int]
		Of   *big.Int
		Many int
		Tag  int16
	}
	nothing struct{}

	item struct {
		ID   int32
		Name string
	}
	itemMore struct {
		ID    int32
		Name  string
		Price float64
		Tags  []string
	}
	itemTurned struct {
		Name string
		ID   int32
	}
	itemRenamed struct {
		Number int32 `weir:"was=ID"`
		Name   string
	}
	itemWide struct {
		ID   int64
		Name string
	}
	itemNarrow struct {
		ID   int8
		Name string
	}
	itemLoose struct {
		ID   *int32
		Name []byte
	}
	itemCached struct {
		ID    int32
		Name  string
		Cache map[string]int `weir:"-"`
	}
	itemText  struct{ ID, Name string }
	itemAtAll struct { // as itemMore
		Title string `weir:"was=Name"`
		Notes []spot
		ID    *float64
	}
	embedding struct {
		item
		Price float64
	}
	embeddingMore struct {
		item
		Price float64
		Rest  itemMore
	}
	unrelated struct{ Street, City string }

	family struct {
		V    int32
		Kids []family
	}
	familyMore struct {
		V    int64
		Kids []familyMore
		Note string
	}
	chain struct {
		V    int32
		Next *chain
	}
	chainTurned struct {
		Next *chainTurned
		V    int64
	}

	spot16      struct{ X, Y int16 }
	spotWide    struct{ X, Y int64 }
	spotRenamed struct {
		X     int16
		Under int16 `weir:"was=Y"`
	}
	spotTurned struct{ Y, X int16 }
	spot3      struct{ X, Y, Z int16 }

	version     struct{ text string }
	versionNext struct{ text string }
)

func (v version) MarshalText() ([]byte, error)         { return []byte(v.text), nil }
func (v *version) UnmarshalText(text []byte) error     { v.text = string(text); return nil }
func (v versionNext) MarshalText() ([]byte, error)     { return []byte(v.text), nil }
func (v *versionNext) UnmarshalText(text []byte) error { v.text = string(text); return nil }

// A row of the table is one change of a type: values of the old type, and the same as the new one.
//
// Each is a field of before and of after, so that a few generic types hold all of them at every place of state.
type row struct {
	field    string
	verdict  verdict
	old, now any // slices, of one length
}

// keyRows are the changes that keys can have too.
var keyRows = []row{
	{"Bool", same, of(true, false), of[flag](true, false)},
	{"Int8To16", same, of[int8](-128, 127), of[int16](-128, 127)},
	{"Int8To32", same, of[int8](-128, 127), of[int32](-128, 127)},
	{"Int8To64", migrate, of[int8](-128, 127), of[int64](-128, 127)},
	{"Int16To64", migrate, of[int16](-1<<15, 1<<15-1), of[int64](-1<<15, 1<<15-1)},
	{"Int32To64", migrate, of[int32](-1<<31, 1<<31-1), of[int64](-1<<31, 1<<31-1)},
	{"Int32ToInt", migrate, of[int32](-1<<31, 1<<31-1), of(-1<<31, 1<<31-1)},
	{"Int64Named", same, of[int64](-1<<63, 1<<63-1), of[serial](-1<<63, 1<<63-1)},
	{"IntTo64", same, of(-1<<63, 1<<63-1), of[int64](-1<<63, 1<<63-1)},
	{"Uint8To16", same, of[uint8](0, 255), of[uint16](0, 255)},
	{"Uint8ToInt32", same, of[uint8](0, 255), of[int32](0, 255)},
	{"Uint16To64", migrate, of[uint16](0, 65535), of[int64](0, 65535)},
	{"Uint16To32", migrate, of[uint16](0, 65535), of[uint32](0, 65535)},
	{"Uint32ToInt64", same, of[uint32](0, 1<<32-1), of[int64](0, 1<<32-1)},
	{"UintTo64", same, of[uint](0, 1<<64-1), of[uint64](0, 1<<64-1)},
	{"Duration", same, of[int64](-7, 1<<40), of[time.Duration](-7, 1<<40)},
	{"Float32To64", migrate, of[float32](-1.5, 1<<100), of(-1.5, 1<<100)},
	{"Float64Named", same, of(-1.5, 1e300), of[metres](-1.5, 1e300)},
	{"Int32To16WhereItFits", migrate, of[int32](-1, 3), of[int16](-1, 3)},
	{"Int64ToUint32WhereItFits", migrate, of[int64](1, 1<<32-1), of[uint32](1, 1<<32-1)},
	{"String", same, of("", "b\x00\xff"), of[label]("", "b\x00\xff")},
	{"Fixed", same, of([4]byte{1}, [4]byte{3: 9}), of(digest{1}, digest{3: 9})},
	{"Array", same, of([2]string{"", "a"}, [2]string{}), of([2]label{"", "a"}, [2]label{})},
	{"ArrayWider", migrate, of([2]int16{1, 2}, [2]int16{}), of([2]int64{1, 2}, [2]int64{})},
	{"GenericWider", migrate, of(paired[int8, string]{1, "a"}, paired[int8, string]{}), of(paired[int64, string]{1, "a"}, paired[int64, string]{})},
	{"OtherPackage", same, of(image.Pt(1, 2), image.Pt(-1, 0)), of(spot{1, 2}, spot{-1, 0})},
	{"OtherPackageNested", same, of(image.Rect(1, 2, 3, 4), image.Rectangle{}), of(box{spot{1, 2}, spot{3, 4}}, box{})},
	{"FieldsWider", migrate, of(spot16{1, 2}, spot16{-1, 0}), of(spotWide{1, 2}, spotWide{-1, 0})},
	{"FieldsRenamed", migrate, of(spot16{1, 2}, spot16{-1, 0}), of(spotRenamed{1, 2}, spotRenamed{-1, 0})},
}

// keyBefore is a key of the older program, keyAfter of the newer.
type keyBefore struct {
	Bool                                           bool
	Int8To16, Int8To32, Int8To64                   int8
	Int16To64                                      int16
	Int32To64, Int32ToInt, Int32To16WhereItFits    int32
	Int64Named, Duration, Int64ToUint32WhereItFits int64
	IntTo64                                        int
	Uint8To16, Uint8ToInt32                        uint8
	Uint16To64, Uint16To32                         uint16
	Uint32ToInt64                                  uint32
	UintTo64                                       uint
	Float32To64                                    float32
	Float64Named                                   float64
	String                                         string
	Fixed                                          [4]byte
	Array                                          [2]string
	ArrayWider                                     [2]int16
	GenericWider                                   paired[int8, string]
	OtherPackage                                   image.Point
	OtherPackageNested                             image.Rectangle
	FieldsWider, FieldsRenamed                     spot16
	N                                              int64 // makes many different keys
}

type keyAfter struct {
	Bool                           flag
	Int8To16                       int16
	Int8To32                       int32
	Int8To64, Int16To64, Int32To64 int64
	Int32ToInt                     int
	Int32To16WhereItFits           int16
	Int64Named                     serial
	Duration                       time.Duration
	Int64ToUint32WhereItFits       uint32
	IntTo64                        int64
	Uint8To16                      uint16
	Uint8ToInt32                   int32
	Uint16To64                     int64
	Uint16To32                     uint32
	Uint32ToInt64                  int64
	UintTo64                       uint64
	Float32To64                    float64
	Float64Named                   metres
	String                         label
	Fixed                          digest
	Array                          [2]label
	ArrayWider                     [2]int64
	GenericWider                   paired[int64, string]
	OtherPackage                   spot
	OtherPackageNested             box
	FieldsWider                    spotWide
	FieldsRenamed                  spotRenamed
	N                              serial
}

// valueRows are the changes that only values can have.
var valueRows = []row{
	{"Int32ToFloat64", migrate, of[int32](-1<<31, 1<<31-1), of[float64](-1<<31, 1<<31-1)},
	{"StringToBytes", migrate, of("a", "b\xff"), of([]byte("a"), []byte("b\xff"))},
	{"BytesToString", migrate, of([]byte("a"), nil), of("a", "")},
	{"Time", same, of(noon, time.Time{}), of(noon, time.Time{})},
	{"TimeToLong", migrate, of(noon, time.Unix(-1, 5).UTC()), of[int64](noon.UnixNano(), -1e9+5)},
	{"LongToTime", migrate, of[int64](noon.UnixNano(), -1e9+5), of(noon, time.Unix(-1, 5).UTC())},
	{"Opaque", same, of(netip.MustParseAddr("1.2.3.4"), netip.Addr{}), of(netip.MustParseAddr("1.2.3.4"), netip.Addr{})},
	{"OpaqueNamed", migrate, of(version{"v1"}, version{}), of(versionNext{"v1"}, versionNext{})},
	{"OpaqueToText", migrate, of(version{"v1"}, version{}), of("v1", "")},
	{"OpaqueToBytes", migrate, of(netip.MustParseAddr("1.2.3.4"), netip.Addr{}), of([]byte{1, 2, 3, 4}, nil)},
	{"TextToOpaque", migrate, of("v1", ""), of(version{"v1"}, version{})},
	{"OpaqueBehindAPointer", migrate, of(holder[*big.Int]{big.NewInt(1 << 40), 1}, holder[*big.Int]{}), of(heldMore{big.NewInt(1 << 40), 0, 1}, heldMore{})},
	{"Pointer", same, of(ptr(int32(5)), nil), of(ptr(int32(5)), nil)},
	{"PointerWider", migrate, of(ptr(int32(5)), nil), of(ptr(int64(5)), nil)},
	{"MadeOptional", migrate, of[int32](5, 0), of(ptr(int32(5)), ptr(int32(0)))},
	{"StructMadeOptional", migrate, of(item{1, "a"}, item{}), of(&itemWide{1, "a"}, &itemWide{})},
	{"Slice", same, of([]int32{1, 2}, nil), of([]int32{1, 2}, nil)},
	{"SliceWider", migrate, of([]int32{1, 2}, nil), of([]int64{1, 2}, nil)},
	{"SliceInSlice", migrate, of([][]int32{{1}, nil}, nil), of([][]int64{{1}, nil}, nil)},
	{"SliceOfStructs", migrate, of([]item{{1, "a"}, {}}, nil), of([]itemMore{{1, "a", 0, nil}, {}}, nil)},
	{"SliceOfPointers", migrate, of([]*item{{1, "a"}, nil}, nil), of([]*itemMore{{1, "a", 0, nil}, nil}, nil)},
	{"ArrayToSlice", same, of([2]int32{1, 2}, [2]int32{}), of([]int32{1, 2}, []int32{0, 0})},
	{"SliceToArrayWhereItFits", migrate, of([]int32{1, 2}, []int32{3, 4}), of([2]int32{1, 2}, [2]int32{3, 4})},
	{"ArrayOfStructs", migrate, of([1]item{{1, "a"}}, [1]item{}), of([1]itemMore{{1, "a", 0, nil}}, [1]itemMore{})},
	{"Map", migrate, of(map[string]int32{"a": 1, "b": 2}, map[string]int32{}), of(map[string]int64{"a": 1, "b": 2}, map[string]int64{})},
	{"MapKeysWider", migrate, of(map[int32]bool{1: true, -2: false}, map[int32]bool{}), of(map[int64]bool{1: true, -2: false}, map[int64]bool{})},
	{"MapByStructs", migrate, of(map[spot16]bool{{1, 2}: true}, map[spot16]bool{}), of(map[spotWide]bool{{1, 2}: true}, map[spotWide]bool{})},
	{"MapOfStructs", migrate, of(map[int32]item{1: {1, "a"}}, map[int32]item{}), of(map[int32]itemMore{1: {ID: 1, Name: "a"}}, map[int32]itemMore{})},
	{"MapInMap", migrate, of(map[string]map[string]int32{"a": {"b": 1}}, map[string]map[string]int32{}), of(map[string]map[string]int64{"a": {"b": 1}}, map[string]map[string]int64{})},
	{"Set", same, of(map[string]nothing{"a": {}}, map[string]nothing{}), of(map[label]struct{}{"a": {}}, map[label]struct{}{})},
	{"StructNamed", same, of(item{1, "a"}, item{}), of(struct {
		ID   int32
		Name string
	}{1, "a"}, struct {
		ID   int32
		Name string
	}{})},
	{"FieldsAdded", migrate, of(item{1, "a"}, item{}), of(itemMore{ID: 1, Name: "a"}, itemMore{})},
	{"FieldsRemoved", migrate, of(itemMore{1, "a", 2.5, []string{"x"}}, itemMore{ID: 2}), of(item{1, "a"}, item{ID: 2})},
	{"FieldsTurned", migrate, of(item{1, "a"}, item{ID: 2}), of(itemTurned{"a", 1}, itemTurned{ID: 2})},
	{"FieldRenamed", migrate, of(item{1, "a"}, item{ID: 2}), of(itemRenamed{1, "a"}, itemRenamed{Number: 2})},
	{"FieldRenamedLongAgo", same, of(itemRenamed{1, "a"}, itemRenamed{}), of(itemRenamed{1, "a"}, itemRenamed{})},
	{"FieldWider", migrate, of(item{1, "a"}, item{ID: -1 << 31}), of(itemWide{1, "a"}, itemWide{ID: -1 << 31})},
	{"FieldNarrowerWhereItFits", migrate, of(item{1, "a"}, item{ID: -128}), of(itemNarrow{1, "a"}, itemNarrow{ID: -128})},
	{"FieldsLooser", migrate, of(item{1, "a"}, item{2, "b"}), of(itemLoose{ptr(int32(1)), []byte("a")}, itemLoose{ptr(int32(2)), []byte("b")})},
	{"FieldNotKept", same, of(item{1, "a"}, item{}), of(itemCached{ID: 1, Name: "a"}, itemCached{})},
	{"EverythingAtOnce", migrate, of(itemMore{1, "a", 2.5, []string{"x"}}, itemMore{ID: 2}), of(itemAtAll{"a", nil, ptr(1.0)}, itemAtAll{"", nil, ptr(2.0)})},
	{"AllGone", migrate, of(item{1, "a"}, item{}), of(nothing{}, nothing{})},
	{"Embedded", migrate, of(embedding{item{1, "a"}, 1.5}, embedding{}), of(embeddingMore{item{1, "a"}, 1.5, itemMore{}}, embeddingMore{})},
	{"StructInStruct", migrate, of(holder[item]{item{1, "a"}, 3}, holder[item]{}), of(holder[itemMore]{itemMore{ID: 1, Name: "a"}, 3}, holder[itemMore]{})},
	{"PointerInStruct", migrate, of(holder[*item]{&item{1, "a"}, 3}, holder[*item]{}), of(holder[*itemMore]{&itemMore{ID: 1, Name: "a"}, 3}, holder[*itemMore]{})},
	{"Tree", migrate, of(family{1, []family{{2, nil}, {3, []family{{4, nil}}}}}, family{}), of(familyMore{1, []familyMore{{2, nil, ""}, {3, []familyMore{{4, nil, ""}}, ""}}, ""}, familyMore{})},
	{"LinkedList", migrate, of(chain{1, &chain{2, nil}}, chain{}), of(chainTurned{&chainTurned{nil, 2}, 1}, chainTurned{})},
	{"Generic", migrate, of(paired[int32, []item]{7, []item{{1, "a"}}}, paired[int32, []item]{}), of(paired[int64, []itemMore]{7, []itemMore{{ID: 1, Name: "a"}}}, paired[int64, []itemMore]{})},
	{"GenericOfAnotherPackage", migrate, of(sql.Null[int32]{V: 3, Valid: true}, sql.Null[int32]{}), of(nullable[int64]{3, true}, nullable[int64]{})},
	{"KeyTurned", migrate, of(spot16{1, 2}, spot16{}), of(spotTurned{2, 1}, spotTurned{})},
	{"KeyLonger", migrate, of(spot16{1, 2}, spot16{}), of(spot3{1, 2, 0}, spot3{})},
}

// before is a value of the older program, after of the newer: a field for each row.
type before struct {
	Keys                     keyBefore
	Int32ToFloat64           int32
	StringToBytes            string
	BytesToString            []byte
	Time                     time.Time
	TimeToLong               time.Time
	LongToTime               int64
	Opaque                   netip.Addr
	OpaqueNamed              version
	OpaqueToText             version
	OpaqueToBytes            netip.Addr
	TextToOpaque             string
	OpaqueBehindAPointer     holder[*big.Int]
	Pointer                  *int32
	PointerWider             *int32
	MadeOptional             int32
	StructMadeOptional       item
	Slice                    []int32
	SliceWider               []int32
	SliceInSlice             [][]int32
	SliceOfStructs           []item
	SliceOfPointers          []*item
	ArrayToSlice             [2]int32
	SliceToArrayWhereItFits  []int32
	ArrayOfStructs           [1]item
	Map                      map[string]int32
	MapKeysWider             map[int32]bool
	MapByStructs             map[spot16]bool
	MapOfStructs             map[int32]item
	MapInMap                 map[string]map[string]int32
	Set                      map[string]nothing
	StructNamed              item
	FieldsAdded              item
	FieldsRemoved            itemMore
	FieldsTurned             item
	FieldRenamed             item
	FieldRenamedLongAgo      itemRenamed
	FieldWider               item
	FieldNarrowerWhereItFits item
	FieldsLooser             item
	FieldNotKept             item
	EverythingAtOnce         itemMore
	AllGone                  item
	Embedded                 embedding
	StructInStruct           holder[item]
	PointerInStruct          holder[*item]
	Tree                     family
	LinkedList               chain
	Generic                  paired[int32, []item]
	GenericOfAnotherPackage  sql.Null[int32]
	KeyTurned                spot16
	KeyLonger                spot16
}

type after struct {
	Keys                    keyAfter
	Int32ToFloat64          float64
	StringToBytes           []byte
	BytesToString           string
	Time                    time.Time
	TimeToLong              int64
	LongToTime              time.Time
	Opaque                  netip.Addr
	OpaqueNamed             versionNext
	OpaqueToText            string
	OpaqueToBytes           []byte
	TextToOpaque            version
	OpaqueBehindAPointer    heldMore
	Pointer                 *int32
	PointerWider            *int64
	MadeOptional            *int32
	StructMadeOptional      *itemWide
	Slice                   []int32
	SliceWider              []int64
	SliceInSlice            [][]int64
	SliceOfStructs          []itemMore
	SliceOfPointers         []*itemMore
	ArrayToSlice            []int32
	SliceToArrayWhereItFits [2]int32
	ArrayOfStructs          [1]itemMore
	Map                     map[string]int64
	MapKeysWider            map[int64]bool
	MapByStructs            map[spotWide]bool
	MapOfStructs            map[int32]itemMore
	MapInMap                map[string]map[string]int64
	Set                     map[label]struct{}
	StructNamed             struct {
		ID   int32
		Name string
	}
	FieldsAdded              itemMore
	FieldsRemoved            item
	FieldsTurned             itemTurned
	FieldRenamed             itemRenamed
	FieldRenamedLongAgo      itemRenamed
	FieldWider               itemWide
	FieldNarrowerWhereItFits itemNarrow
	FieldsLooser             itemLoose
	FieldNotKept             itemCached
	EverythingAtOnce         itemAtAll
	AllGone                  nothing
	Embedded                 embeddingMore
	StructInStruct           holder[itemMore]
	PointerInStruct          holder[*itemMore]
	Tree                     familyMore
	LinkedList               chainTurned
	Generic                  paired[int64, []itemMore]
	GenericOfAnotherPackage  nullable[int64]
	KeyTurned                spotTurned
	KeyLonger                spot3
}

// refusal is a change that no state can follow, neither as a value nor, where both are keys, as a key.
type refusal struct {
	name     string
	old, now any
	says     string // part of why
}

var refusals = []refusal{
	{"int16 to int8", int16(0), int8(0), "stored as int16, declared as int8"},
	{"uint16 to int16", uint16(0), int16(0), "stored as uint16, declared as int16"},
	{"int8 to uint8", int8(0), uint8(0), "stored as int8, declared as uint8"},
	{"int64 to int32", int64(0), int32(0), "stored as long, declared as int"},
	{"uint32 to int32", uint32(0), int32(0), "stored as uint32, declared as int"},
	{"int64 to uint64", int64(0), uint64(0), "stored as long, declared as uint64"},
	{"uint64 to int64", uint64(0), int64(0), "stored as uint64, declared as long"},
	{"float64 to float32", 0.0, float32(0), "stored as double, declared as float"},
	{"int64 to float64", int64(0), 0.0, "stored as long, declared as double"},
	{"float64 to int64", 0.0, int64(0), "stored as double, declared as long"},
	{"bool to int8", true, int8(0), "stored as boolean, declared as int8"},
	{"string to int64", "", int64(0), "stored as string, declared as long"},
	{"int64 to string", int64(0), "", "stored as long, declared as string"},
	{"more bytes of a length", [4]byte{}, [5]byte{}, "stored as 4 bytes, declared as 5 bytes"},
	{"bytes of a length to uint64", [8]byte{}, uint64(0), "stored as 8 bytes, declared as uint64"},
	{"bytes of a length to a slice", [4]byte{}, []byte{}, "stored as 4 bytes, declared as bytes"},
	{"an opaque type to one of other methods", version{}, netip.Addr{}, "stored as version in text form, declared as Addr in binary form"},
	{"text to an opaque type of bytes", "", netip.Addr{}, "stored as string, declared as Addr in binary form"},
	{"time to uint32", noon, uint32(0), "stored as time, declared as uint32"},
	{"a pointer to a value", ptr(int32(0)), int32(0), "stored as optional int, declared as int"},
	{"one to many", int32(0), []int32{}, "stored as int, declared as list of int"},
	{"many to one", []int32{}, int32(0), "stored as list of int, declared as int"},
	{"a slice's elements narrowed", []int64{}, []int32{}, "field []: stored as long, declared as int"},
	{"a shorter array", [3]int32{}, [2]int32{}, "stored as array of 3 int, declared as array of 2 int"},
	{"a longer array", [2]int32{}, [3]int32{}, "stored as array of 2 int, declared as array of 3 int"},
	{"a shorter array in a struct", holder[[3]int16]{}, holder[[2]int16]{}, "field Of: stored as array of 3 int16, declared as array of 2 int16"},
	{"elements without bytes", []nothing{}, []item{}, "stored as nothing, declared as item"},
	{"a map to a slice", map[string]int32{}, []int32{}, "stored as map of string to int, declared as list of int"},
	{"a map's keys of another type", map[int32]bool{}, map[string]bool{}, "field [key]: stored as int, declared as string"},
	{"a map's keys of another length", map[[2]int32]bool{}, map[[3]int32]bool{}, "field [key]: stored as array of 2 int"},
	{"a map's keys turned", map[spot16]bool{}, map[spotTurned]bool{}, "field [key]: stored as spot16{X, Y}, declared as spotTurned{Y, X}"},
	{"nothing in common", item{}, unrelated{}, "stored as item{ID, Name}, declared as unrelated{Street, City}"},
	{"nothing in common, deeper", holder[item]{}, holder[unrelated]{}, "field Of: stored as item{ID, Name}"},
	{"a field of another type", item{}, itemText{}, "field ID: stored as int, declared as string"},
	{"a field narrowed", itemWide{}, item{}, "field ID: stored as long, declared as int"},
	{"a field that may be nothing", itemLoose{}, item{}, "field ID: stored as optional int, declared as int"},
	{"a struct to a number", spot{}, int64(0), "stored as spot, declared as long"},
}

// keyRefusals are changes that values can have and keys cannot: the canonical bytes would be others.
var keyRefusals = []refusal{
	{"int32 to float64", int32(0), 0.0, "stored as int, declared as double"},
	{"fields in another order", spot16{}, spotTurned{}, "stored as spot16{X, Y}, declared as spotTurned{Y, X}"},
	{"one more field", spot16{}, spot3{}, "stored as spot16{X, Y}, declared as spot3{X, Y, Z}"},
	{"one field less", spot3{}, spot16{}, "stored as spot3{X, Y, Z}, declared as spot16{X, Y}"},
	{"a struct of another name with its fields in another order", image.Pt(0, 0), spotTurned{}, "stored as Point{X, Y}, declared as spotTurned{Y, X}"},
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 7, time.UTC)

func of[T any](vs ...T) []T { return vs }

func ptr[T any](v T) *T { return &v }

// filled makes the values whose fields are those of the rows: all the first of each, and all the second.
func filled[T any](rows []row, column func(r row) any) []T {
	vs := make([]T, 2)
	for i := range vs {
		v := reflect.ValueOf(&vs[i]).Elem()
		for _, r := range rows {
			v.FieldByName(r.field).Set(reflect.ValueOf(column(r)).Index(i))
		}
	}
	return vs
}

func oldOf(r row) any { return r.old }
func nowOf(r row) any { return r.now }

// TestTheTableOfTypeChanges has what becomes of each type, and compares the values at every place of state, kept in every way, at other
// parallelisms.
func TestTheTableOfTypeChanges(t *testing.T) {
	verdicts := map[verdict]int{}
	for _, r := range append(keyRows, valueRows...) {
		verdicts[r.verdict]++
		old, now := reflect.TypeOf(r.old).Elem(), reflect.TypeOf(r.now).Elem()
		changes, err := codec.Compare(schemaOf(t, old), schemaOf(t, now))
		if err != nil || (len(changes) == 0) != (r.verdict == same) {
			t.Errorf("%s: %v to %v: %v, %v, want %s", r.field, old, now, changes, err, r.verdict)
		}
	}
	t.Logf("%d are the same, %d migrate, %d are refused, %d more as keys", verdicts[same], verdicts[migrate], len(refusals), len(keyRefusals))

	keysBefore, keysAfter := filled[keyBefore](keyRows, oldOf), filled[keyAfter](keyRows, nowOf)
	t.Run("values", func(t *testing.T) {
		old, now := filled[before](valueRows, oldOf), filled[after](valueRows, nowOf)
		for i := range old {
			old[i].Keys, now[i].Keys = keysBefore[i], keysAfter[i]
		}
		tryPlaces(t, shelvesOf(old), shelvesOf(now))
	})
	t.Run("keys", func(t *testing.T) {
		var old []keyBefore
		var now []keyAfter
		for i := range int64(12) {
			k, l := keysBefore[i%2], keysAfter[i%2]
			k.N, l.N = i, serial(i)
			old, now = append(old, k), append(now, l)
		}
		tryPlaces(t, ringsOf(old), ringsOf(now))
	})
}

func schemaOf(t *testing.T, typ reflect.Type) string {
	t.Helper()
	schema, err := codec.SchemaOf(typ)
	must(t, err)
	return schema
}

// places are the states in which a type can stand as a value, and those in which it can as a key.
func places(value, key string) (values, keys []snapshot.StateSchema) {
	const long = `"long"`
	for _, kind := range []string{state.KindValue, state.KindList, state.KindReducing, state.KindAggregating} {
		values = append(values, snapshot.StateSchema{Name: kind, Kind: kind, Key: long, Value: value})
	}
	for _, kind := range []string{state.KindOpList, state.KindUnion} {
		values = append(values, snapshot.StateSchema{Name: kind, Kind: kind, Value: value})
	}
	values = append(values, snapshot.StateSchema{Name: "map", Kind: state.KindMap, Key: long, MapKey: long, Value: value},
		snapshot.StateSchema{Name: "broadcast", Kind: state.KindBroadcast, MapKey: long, Value: value})
	keys = append(keys, snapshot.StateSchema{Name: "of a key", Kind: state.KindValue, Key: key, Value: long},
		snapshot.StateSchema{Name: "map", Kind: state.KindMap, Key: long, MapKey: key, Value: long},
		snapshot.StateSchema{Name: "broadcast", Kind: state.KindBroadcast, MapKey: key, Value: long})
	return values, keys
}

// TestWhatTypesCannotBecome is refused at every place before anything starts, and says where, what, why, and what to do.
func TestWhatTypesCannotBecome(t *testing.T) {
	for _, r := range refusals {
		old, now := schemaOf(t, reflect.TypeOf(r.old)), schemaOf(t, reflect.TypeOf(r.now))
		was, keysWere := places(old, old)
		is, keysAre := places(now, now)
		for i := range was {
			r.mustRefuse(t, was[i], is[i])
		}
		if isKey(reflect.TypeOf(r.old)) && isKey(reflect.TypeOf(r.now)) {
			for i := range keysWere {
				r.mustRefuse(t, keysWere[i], keysAre[i])
			}
		}
	}
	for _, r := range keyRefusals {
		old, now := schemaOf(t, reflect.TypeOf(r.old)), schemaOf(t, reflect.TypeOf(r.now))
		_, was := places(old, old)
		_, is := places(now, now)
		for i := range was {
			r.mustRefuse(t, was[i], is[i])
		}
	}
}

// isKey tells which of the types above keys can have.
func isKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return isKey(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !t.Field(i).IsExported() || !isKey(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() <= reflect.Float64 || t.Kind() == reflect.String
}

func (r refusal) mustRefuse(t *testing.T, stored, declared snapshot.StateSchema) {
	t.Helper()
	o := &snapshot.Operator{Parallelism: 1, Schemas: []snapshot.StateSchema{stored}, Subtasks: []snapshot.Subtask{{}}}
	if stored.Key != "" {
		o.Subtasks[0].Keyed = []snapshot.KeyedHandle{{Range: allGroups}}
	} else {
		o.Subtasks[0].Lists = []snapshot.ListHandle{{Name: stored.Name}}
	}
	err := fit.States(o, []snapshot.StateSchema{declared}, false)
	of := `state "` + stored.Name + `" (` + stored.Kind + `)`
	if stored.Name == "of a key" {
		of = "the keys: "
	}
	for _, part := range []string{of, r.says, "stored as ", "declared as ", "; "} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s, %s: got %v, want a refusal with %q", r.name, stored.Kind, err, part)
		}
	}
}

// What a schema does not say is seen when it is read: a value that does not fit fails the restore for good, by the name of its state.
func TestAValueThatDoesNotFit(t *testing.T) {
	old := func(t *testing.T, within base.KeyGroupRange) *home {
		var wide state.Value[int32]
		var all state.OperatorList[int32]
		k := openKeyed[int64](t, within, map[string]binder{"count": &wide})
		h := &home{keyed: k, within: within, keys: 2, operator: openOperator(t, &all)}
		h.hash = func(i int) uint64 { return k.Hash(int64(i)) }
		h.fill = func(i int) {
			k.Seek(k.Hash(int64(i)), int64(i))
			wide.Set(int32(i) << 16)
			all.Add(1 << 16)
		}
		return h
	}
	now := func(t *testing.T) *home {
		k := openKeyed[int64](t, allGroups, map[string]binder{"count": new(state.Value[int16])})
		return &home{keyed: k, operator: openOperator(t, new(state.OperatorList[int16]))}
	}
	for _, m := range []medium{inCheckpoint, inCanonical, inNative} {
		all := keepAll(t, m, old, 2)
		h := now(t)
		for what, err := range map[string]error{`state "count"`: all.restore(h), `state "list 0"`: errors.Join(h.restoreOperator(all.operator[0]), h.restoreOperator(all.operator[1]))} {
			var final interface{ NonRecoverable() bool }
			if !errors.As(err, &final) || !final.NonRecoverable() || !strings.Contains(err.Error(), "65536 does not fit into int16") || !strings.Contains(err.Error(), what) {
				t.Errorf("%v, %s: %v", m, what, err)
			}
		}
	}
}
