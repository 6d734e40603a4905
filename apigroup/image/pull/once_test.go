package pull

import (
	"fmt"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
)

func TestStreamIsReadOnce(t *testing.T) {
	reads := 0
	find := Once(func(_, name string) (*imagev1.ImageStream, error) {
		reads++
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
	if reads != 2 {
		t.Errorf("%d reads of two streams", reads)
	}
	for i := range MaxStreams {
		if _, err := find("shop", fmt.Sprint(i)); (err == nil) != (i < MaxStreams-2) {
			t.Errorf("stream %d: %v", i+2, err)
		}
	}
}
