package pull

import (
	"errors"
	"fmt"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
)

func TestStreamIsReadOnce(t *testing.T) {
	errForbidden := errors.New("forbidden")
	reads := 0
	find := Once(func(_, name string) (*imagev1.ImageStream, error) {
		reads++
		if name == "forbidden" {
			return nil, errForbidden
		}
		if name == "missing" {
			return nil, nil
		}
		return &imagev1.ImageStream{}, nil
	})
	for range 1000 {
		if stream, err := find("shop", "app"); err != nil || stream == nil {
			t.Fatalf("stream %v, error %v", stream, err)
		}
		if stream, err := find("shop", "missing"); err != nil || stream != nil {
			t.Fatalf("missing stream: %v, error %v", stream, err)
		}
	}
	for range 1000 {
		if _, err := find("bank", "forbidden"); !errors.Is(err, errForbidden) {
			t.Fatalf("forbidden stream: %v", err)
		}
	}
	if reads != 3 {
		t.Errorf("%d reads of three streams", reads)
	}
	for i := range MaxStreams {
		if _, err := find("shop", fmt.Sprint(i)); (err == nil) != (i < MaxStreams-3) {
			t.Errorf("stream %d: %v", i+3, err)
		}
	}
}
