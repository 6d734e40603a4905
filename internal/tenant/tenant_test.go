package tenant

import (
	"testing"

	"google.golang.org/grpc/metadata"
)

func TestMarkReplacesEarlierOne(t *testing.T) {
	ctx := metadata.AppendToOutgoingContext(t.Context(), "other", "value")
	for _, want := range []Mark{{Name: Project("shop"), Owner: User("\u00dcmit"), NoWait: true}, {Name: User("\u00dcmit"), Deletes: true}, {}, {Name: Public}} {
		ctx = want.With(ctx)
		if got := Outgoing(ctx); got != want {
			t.Errorf("the mark is %+v, want %+v", got, want)
		}
		md, _ := metadata.FromOutgoingContext(ctx)
		if got := Incoming(metadata.NewIncomingContext(t.Context(), md)); got != want {
			t.Errorf("etcd receives %+v, want %+v", got, want)
		}
		if len(md["other"]) != 1 {
			t.Errorf("other metadata is %v", md)
		}
	}
}
