package macvlan

import (
	"strings"
	"testing"
)

func TestAnnotationSelectsDevice(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		want        Request
		wantErr     bool
	}{
		{name: "default device", value: "true", want: Request{Wanted: true}},
		{name: "none", value: "false"},
		{name: "named device", value: "eth1", want: Request{Wanted: true, Parent: "eth1"}},
		{name: "VLAN of a device", value: "bond0.100", want: Request{Wanted: true, Parent: "bond0.100"}},
		{name: "empty", value: "", wantErr: true},
		{name: "path", value: "../eth0", wantErr: true},
		{name: "too long", value: "abcdefghijklmnop", wantErr: true},
		{name: "space", value: "eth 0", wantErr: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse(map[string]string{Annotation: tt.value})
			if got != tt.want || (err != nil) != tt.wantErr {
				t.Errorf("got %+v, error %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), Annotation) {
				t.Errorf("the error does not name the annotation: %v", err)
			}
		})
	}
	if got, err := Parse(nil); got.Wanted || err != nil {
		t.Errorf("without the annotation: got %+v, error %v", got, err)
	}
}
