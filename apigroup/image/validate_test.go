package image

import "testing"

func TestNamesOfStreams(t *testing.T) {
	for _, tt := range []struct {
		name   string
		prefix bool // the name is a prefix for a generated name
		valid  bool
	}{
		{"ruby", false, true},
		{"my.app_v1", false, true},
		{"my--app__v1", false, true},
		{"Ruby", false, false},
		{"ruby-", false, false},
		{"-ruby", false, false},
		{"a/b", false, false},
		{"", false, false},
		{"artifacts-", true, true},
		{"ruby", true, true},
		{"Ruby-", true, false},
		{"-", true, false},
	} {
		if reasons := validStreamName(tt.name, tt.prefix); (len(reasons) == 0) != tt.valid {
			t.Errorf("name %q, prefix %v: reasons %q", tt.name, tt.prefix, reasons)
		}
	}
}
