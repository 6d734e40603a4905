package apiserver

import (
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDecodeConfig(t *testing.T) {
	type config struct {
		metav1.TypeMeta `json:",inline"`
		Limit           int `json:"limit"`
	}
	for name, tt := range map[string]struct {
		reader io.Reader
		want   int
		err    string // part of the error, or "" if no error is expected
	}{
		"no configuration":             {nil, 7, ""},
		"empty configuration":          {strings.NewReader(""), 7, ""},
		"YAML of the kind":             {strings.NewReader("kind: LimitConfig\nlimit: 3"), 3, ""},
		"JSON of the kind":             {strings.NewReader(`{"kind": "LimitConfig", "limit": 3}`), 3, ""},
		"configuration without a kind": {strings.NewReader("limit: 3"), 3, ""},
		"switch only":                  {strings.NewReader("kind: DefaultAdmissionConfig\ndisable: false"), 7, ""},
		"another kind":                 {strings.NewReader("kind: OtherConfig\nlimit: 3"), 7, `kind is "OtherConfig", must be LimitConfig`},
		"unknown field":                {strings.NewReader("kind: LimitConfig\nlimits: 3"), 7, `unknown field "limits"`},
		"not YAML":                     {strings.NewReader("{"), 7, "did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			got := config{Limit: 7}
			err := DecodeConfig(tt.reader, "LimitConfig", &got)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error is %v, want %q", err, tt.err)
			}
			if got.Limit != tt.want {
				t.Errorf("limit is %d, want %d", got.Limit, tt.want)
			}
		})
	}
}
