package idling

import "testing"

func TestMarked(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		want        bool
	}{
		{"no annotations", nil, false},
		{"client's annotation", map[string]string{IdledAt: "2020-01-01T00:00:00Z"}, true},
		{"router's annotation", map[string]string{"idling.openshift.io/idled-at": "x"}, true},
		{"empty value", map[string]string{IdledAt: ""}, false},
		{"only targets", map[string]string{Targets: "[]"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Marked(tt.annotations); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
