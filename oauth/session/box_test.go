package session

import "testing"

func TestBoxOpensOnlyItsOwnValues(t *testing.T) {
	box := func(secrets ...Secret) *Box {
		t.Helper()
		b, err := NewBox(secrets)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	old := box(secret("a"))
	text, err := old.Seal("one", "treasure")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		box        *Box
		name, text string
		want       bool
	}{
		"its own value":             {old, "one", text, true},
		"after a change of secrets": {box(secret("b"), secret("a")), "one", text, true},
		"another secret":            {box(secret("b")), "one", text, false},
		"another name":              {old, "two", text, false},
		"a changed value":           {old, "one", text[:len(text)-4] + "AAAA", false},
		"part of a value":           {old, "one", text[:len(text)/2], false},
		"nothing":                   {old, "one", "", false},
	} {
		var got string
		err := tt.box.Open(tt.name, tt.text, &got)
		if (err == nil) != tt.want || (got == "treasure") != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := NewBox(nil); err == nil {
		t.Error("a box without a secret seals values")
	}
}
