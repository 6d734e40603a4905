package flexvolume

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func noRedaction(text string) string { return text }

func TestInterpret(t *testing.T) {
	exit1 := errors.New("exit status 1")
	const success = `{"status":"Success","device":"/dev/x"}`
	for name, test := range map[string]struct {
		out    output
		device string
		kind   Kind
		lacks  bool
	}{
		"response on standard output":                          {output{stdout: []byte(success + "\n")}, "/dev/x", "", false},
		"noise on standard error":                              {output{stdout: []byte(success), stderr: []byte("warning {")}, "/dev/x", "", false},
		"response on standard error":                           {output{stderr: []byte(success)}, "/dev/x", "", false},
		"response on standard error, noise on standard output": {output{stdout: []byte("hello"), stderr: []byte(success)}, "/dev/x", "", false},
		"response split across both":                           {output{stdout: []byte(success[:9]), stderr: []byte(success[9:])}, "/dev/x", "", false},
		"keys in any case":                                     {output{stdout: []byte(`{"STATUS":"Success","Device":"/dev/x"}`)}, "/dev/x", "", false},
		"not supported with exit 1":                            {output{stdout: []byte(`{"status":"Not supported"}`), exit: exit1}, "", "", true},
		"not supported with exit 0":                            {output{stdout: []byte(`{"status":"Not supported"}`)}, "", "", true},
		"failure with exit 0":                                  {output{stdout: []byte(`{"status":"Failure","message":"no"}`)}, "", KindFailure, false},
		"failure with exit 1":                                  {output{stdout: []byte(`{"status":"Failure"}`), exit: exit1}, "", KindFailure, false},
		"success with exit 1":                                  {output{stdout: []byte(success), exit: exit1}, "", KindExit, false},
		"nothing":                                              {output{}, "", KindNoAnswer, false},
		"no output, exit 1":                                    {output{exit: exit1}, "", KindNoAnswer, false},
		"only text":                                            {output{stdout: []byte("mounted")}, "", KindNoAnswer, false},
		"a JSON string":                                        {output{stdout: []byte(`"Success"`)}, "", KindNoAnswer, false},
		"half an object":                                       {output{stdout: []byte(success[:9])}, "", KindNoAnswer, false},
		"text before":                                          {output{stdout: []byte("x\n" + success)}, "", KindNoise, false},
		"text after":                                           {output{stdout: []byte(success + "\nx")}, "", KindNoise, false},
		"two responses":                                        {output{stdout: []byte(success + success)}, "", KindNoise, false},
		"a megabyte":                                           {output{stdout: []byte(strings.Repeat(" ", maxOutput+1))}, "", KindNoAnswer, false},
		"a megabyte of text":                                   {output{stdout: []byte(strings.Repeat("x", maxOutput+1))}, "", KindTooLong, false},
		"status in another case":                               {output{stdout: []byte(`{"status":"success"}`)}, "", KindStatus, false},
		"no status":                                            {output{stdout: []byte(`{}`)}, "", KindStatus, false},
		"null":                                                 {output{stdout: []byte(`null`)}, "", KindStatus, false},
		"a number for the device":                              {output{stdout: []byte(`{"status":"Success","device":7}`)}, "", KindWrongType, false},
		"text for a flag":                                      {output{stdout: []byte(`{"status":"Success","attached":"true"}`)}, "", KindWrongType, false},
		"text for a capability":                                {output{stdout: []byte(`{"status":"Success","capabilities":{"attach":"false"}}`)}, "", KindWrongType, false},
		"a negative size":                                      {output{stdout: []byte(`{"status":"Success","volumeNewSize":-1}`)}, "", KindSize, false},
		"binary":                                               {output{stdout: []byte{0, 1, 0xff, '{'}}, "", KindNoise, false},
		"wrong type on output, garbage on error":               {output{stdout: []byte(`{"status":1}`), stderr: []byte("x")}, "", KindWrongType, false},
		"white space on output, error text on error":           {output{stdout: []byte(" \n"), stderr: []byte("boom"), exit: exit1}, "", KindNoAnswer, false},
	} {
		t.Run(name, func(t *testing.T) {
			driver := NewDriver("example.com/test", "/x", Settings{})
			got, err := driver.interpret(OpAttach, test.out, noRedaction)
			if got.Device != test.device || KindOf(err) != test.kind || errors.Is(err, ErrNotSupported) != test.lacks {
				t.Errorf("got device %q, error %v (kind %q)", got.Device, err, KindOf(err))
			}
			if err != nil && test.kind == "" && !test.lacks {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestErrorQuotesDriverOutput(t *testing.T) {
	driver := NewDriver("example.com/test", "/x", Settings{})
	_, err := driver.interpret(OpMount, output{stdout: []byte("half\n"), stderr: []byte("disk is on fire\n"), exit: errors.New("exit status 7")}, noRedaction)
	const want = `run mount of FlexVolume driver "example.com/test": it printed no JSON: invalid character 'h' looking for beginning of value: ` +
		`exit status 7, standard output "half", standard error "disk is on fire"`
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v, want\n%s", err, want)
	}
}

func TestCapabilities(t *testing.T) {
	defaults := DefaultCapabilities()
	all := Capabilities{Attach: true, SELinuxRelabel: true, SupportsMetrics: true, FSGroup: true, RequiresFSResize: true}
	for resp, want := range map[string]Capabilities{
		`{"status":"Success"}`:                                         defaults,
		`{"status":"Success","capabilities":null}`:                     defaults,
		`{"status":"Success","capabilities":{}}`:                       defaults,
		`{"status":"Success","capabilities":{"attach":null}}`:          defaults,
		`{"status":"Success","Capabilities":{"supportsMetrics":true}}`: all,
		`{"status":"Success","capabilities":{"attach":false,"selinuxRelabel":false,"fsGroup":false,"requiresFSResize":false}}`: {},
	} {
		got, respErr := parse(output{stdout: []byte(resp)}, noRedaction)
		if respErr != nil {
			t.Errorf("%s: %s", resp, respErr.text)
		}
		if diff := cmp.Diff(want, got.capabilities()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", resp, diff)
		}
	}
}

// FuzzParse checks that parse accepts everything that Kubernetes accepts: standard output and
// standard error whose concatenation is one JSON object.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"status":"Success"}`), []byte("noise"))
	f.Add([]byte(`{"status":`), []byte(`"Failure"}`))
	f.Add([]byte("null"), []byte(`{"status":"Not supported","capabilities":null}`))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		got, respErr := parse(output{stdout: stdout, stderr: stderr}, noRedaction)
		if respErr == nil && got.Status == "" {
			t.Error("a response without a status")
		}
		var upstream response
		both := append(append([]byte{}, stdout...), stderr...)
		accepted := json.Unmarshal(both, &upstream) == nil && upstream.VolumeNewSize >= 0 &&
			(upstream.Status == statusSuccess || upstream.Status == statusNotSupported)
		if accepted && respErr != nil {
			t.Errorf("Kubernetes accepts %q, %q; here: %s", stdout, stderr, respErr.text)
		}
	})
}
