package podbandwidth

import (
	"strings"
	"testing"
)

func TestAnnotationsAreQuantitiesOfBits(t *testing.T) {
	for _, tt := range []struct {
		name, ingress string
		want          uint64
		wantErr       string
	}{
		{name: "document's example", ingress: "10M", want: 10_000_000},
		{name: "binary suffix", ingress: "1Mi", want: 1 << 20},
		{name: "plain number", ingress: "64000", want: 64_000},
		{name: "exponent", ingress: "1e6", want: 1_000_000},
		{name: "lowest", ingress: "1k", want: 1000},
		{name: "highest", ingress: "1P", want: 1_000_000_000_000_000},
		{name: "too low", ingress: "999", wantErr: "from 1k to 1P"},
		{name: "too high", ingress: "1001T", wantErr: "from 1k to 1P"},
		{name: "too high for 64 bits", ingress: "1e30", wantErr: "from 1k to 1P"},
		{name: "negative", ingress: "-10M", wantErr: `is "-10M"`},
		{name: "empty", ingress: "", wantErr: `is ""`},
		{name: "unit of bytes", ingress: "10MB", wantErr: Ingress + ` is "10MB"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ingress, egress, err := Parse(map[string]string{Ingress: tt.ingress})
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %d, error %v, want an error with %q", ingress, err, tt.wantErr)
				}
				return
			}
			if err != nil || ingress != tt.want || egress != 0 {
				t.Errorf("got %d and %d, error %v, want %d and 0", ingress, egress, err, tt.want)
			}
		})
	}
}

func TestBothAnnotationsAreReported(t *testing.T) {
	_, _, err := Parse(map[string]string{Ingress: "fast", Egress: "slow"})
	if err == nil || !strings.Contains(err.Error(), Ingress) || !strings.Contains(err.Error(), Egress) {
		t.Errorf("got %v, want both annotations", err)
	}
}
