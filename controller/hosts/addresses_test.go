package hosts

import (
	"fmt"
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAddressesAreThoseOfAllHosts(t *testing.T) {
	var a *Addresses
	if got := a.List(); got != nil {
		t.Errorf("without a control plane: %v", got)
	}
	a = &Addresses{}
	if got := a.List(); got != nil {
		t.Errorf("without an API server: %v", got)
	}
	nodes := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Nodes()
	if err := nodes.Informer().GetStore().Add(joinedNode("third", "10.132.0.0/23", "::ffff:192.0.2.3")); err != nil {
		t.Fatal(err)
	}
	a.set(nodes.Lister())
	if got := fmt.Sprint(a.List()); got != "[192.0.2.3]" {
		t.Errorf("got %s", got)
	}
}
