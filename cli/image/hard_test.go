package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

func TestPruneRegistryRequestsUnreferencedContent(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		var (
			out       bytes.Buffer
			requested record.GarbageRequest
		)
		p := &hardPruning{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: io.Discard}, confirm: confirm,
			registry: func(_ context.Context, _ string, request record.GarbageRequest) (record.Garbage, error) {
				requested = request
				return record.Garbage{Blobs: []string{id(1)}, Bytes: 3 << 20}, nil
			},
		}
		if err := p.run(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if !requested.Everything || requested.DryRun == confirm || len(requested.Images) > 0 {
			t.Errorf("confirmed %t: request %+v", confirm, requested)
		}
		want := map[bool]string{false: "Would delete 1 blobs\nWould free up 3MiB of disk space\n", true: "Deleted 1 blobs\nFreed up 3MiB of disk space\n"}[confirm]
		if !strings.Contains(out.String(), id(1)) || !strings.HasSuffix(out.String(), want) {
			t.Errorf("confirmed %t: output\n%s", confirm, out.String())
		}
	}
}

func TestPruneRegistryReportsUnreachableRegistry(t *testing.T) {
	broken := errors.New("no route to the registry")
	p := &hardPruning{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), registry: func(context.Context, string, record.GarbageRequest) (record.Garbage, error) {
		return record.Garbage{}, broken
	}}
	if err := p.run(t.Context(), ""); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
