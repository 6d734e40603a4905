package command

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/bootstrap/samples"
)

func TestFailedImageDoesNotEndOtherImages(t *testing.T) {
	var out bytes.Buffer
	var tried []string
	full := errors.New("the disk is full")
	err := eachSample(t.Context(), &out, []*samples.Image{{Name: "first", Version: "1"}, {Name: "second", Version: "2"}, {Name: "third", Version: "3"}},
		func(s *samples.Image, step stepper) error {
			tried = append(tried, s.Name)
			return step("create image", func() error {
				if s.Name == "second" {
					return nil
				}
				return full
			})
		})
	if !slices.Equal(tried, []string{"first", "second", "third"}) {
		t.Errorf("the command has tried %q", tried)
	}
	if !errors.Is(err, full) || err.Error() != "image \"first\": the disk is full\nimage \"third\": the disk is full" {
		t.Errorf("the error is %v", err)
	}
	if text := out.String(); !strings.Contains(text, "[1/3] first:1  failed: the disk is full\n[2/3] second:2  create image ...") {
		t.Errorf("the output is\n%s", text)
	}
}

func TestStateOfImageIsResultOfLastAttempt(t *testing.T) {
	directory := attempts(t.TempDir())
	expect := func(want string) {
		t.Helper()
		if got, err := directory.last("redis"); got != want || err != nil {
			t.Errorf("the state is %q, %v, want %q", got, err, want)
		}
	}
	expect("")
	for _, result := range []error{errors.New("no space\nleft"), nil} {
		end, err := directory.begin("redis")
		if err != nil {
			t.Fatal(err)
		}
		expect("in progress")
		if err := end(result); !errors.Is(err, result) {
			t.Errorf("the attempt ends with %v, want %v", err, result)
		}
		want := ""
		if result != nil {
			want = "failed: no space"
		}
		expect(want)
	}
}
