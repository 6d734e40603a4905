package networkplugin

import "testing"

// FuzzChange checks that parsing and formatting an accepted annotation does not change its meaning.
func FuzzChange(f *testing.F) {
	for _, text := range []string{"join:shop", "isolate", "global:", "join:a:b", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		change, err := ParseChange(text)
		if err != nil {
			return
		}
		again, err := ParseChange(change.String())
		if err != nil || again != change || (change.Action == Join) != (change.Project != "") {
			t.Errorf("%q: got %+v, then %+v, %v", text, change, again, err)
		}
	})
}
