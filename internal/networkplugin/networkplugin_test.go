package networkplugin

import "testing"

func TestParseChange(t *testing.T) {
	for text, want := range map[string]Change{
		"join:shop": {Join, "shop"}, "isolate": {Action: Isolate}, "isolate:": {Action: Isolate}, "global": {Action: Global}, "global:": {Action: Global},
	} {
		change, err := ParseChange(text)
		if err != nil || change != want {
			t.Errorf("%q: %v, %v, want %v", text, change, err, want)
		}
		if again, err := ParseChange(change.String()); err != nil || again != want {
			t.Errorf("%q: %v, %v, want %v", change, again, err, want)
		}
	}
	for _, text := range []string{"", "join", "join:", "join:a:b", "isolate:shop", "split"} {
		if change, err := ParseChange(text); err == nil {
			t.Errorf("%q: %v, want an error", text, change)
		}
	}
}
