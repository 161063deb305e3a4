package config

import "testing"

// FuzzValues: any text is a value of an option or an error that names it, and what was taken is taken again as it is printed.
func FuzzValues(f *testing.F) {
	var keys []string
	for _, s := range sections {
		for _, o := range s.options {
			keys = append(keys, o.key())
		}
	}
	for i := range keys {
		for _, text := range []string{"", "1", "-1", "true", "10 s", "PT1H", "1 gb", "9223372036854775808", "exactly_once", "a:1,b:2"} {
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		key := keys[int(which)%len(keys)]
		c, err := Build(Layer{{Key: key, Value: text, Origin: "-D"}})
		if err != nil {
			return
		}
		for _, s := range c.Settings() {
			if _, err := Build(Layer{s}); err != nil {
				t.Errorf("%s: %q is taken, but not as it is printed, %v: %v", key, text, s.Value, err)
			}
		}
	})
}
