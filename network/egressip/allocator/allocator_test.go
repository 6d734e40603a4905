package allocator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	networkv1 "github.com/openshift/api/network/v1"
	networkfake "github.com/openshift/client-go/network/clientset/versioned/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// TestHostsGetAddresses changes objects while an Allocator runs. Its hosts do not respond, so all
// of them are considered alive.
func TestHostsGetAddresses(t *testing.T) {
	client := networkfake.NewClientset(subnet("a - 192.0.2.50"), subnet("b -"), project("shop", "192.0.2.100"), project("bank", "192.0.2.101"))
	// The fake client sends no bookmark after the initial objects of a watch, so reflectors must
	// list.
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if action.(clienttesting.WatchActionImpl).ListOptions.SendInitialEvents != nil {
			return true, nil, apierrors.NewBadRequest("no initial events")
		}
		return false, nil, nil
	})
	componenttest.Run(t, (&Allocator{Client: client}).Run)
	hosts := client.NetworkV1().HostSubnets()
	patch := func(host, content string) {
		t.Helper()
		if _, err := hosts.Patch(t.Context(), host, types.MergePatchType, []byte(content), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		eventually.Equal(t, "addresses", func() string { return addresses(hosts.List(context.Background(), metav1.ListOptions{})) }, want)
	}
	expect("a: 192.0.2.50 b:")
	patch("b", `{"egressCIDRs": ["192.0.2.0/24"]}`)
	expect("a: 192.0.2.50 b: 192.0.2.100 192.0.2.101")
	patch("a", `{"egressCIDRs": ["192.0.2.0/24"]}`)
	expect("a: 192.0.2.101 b: 192.0.2.100")
	patch("b", `{"egressCIDRs": null}`)
	expect("a: 192.0.2.100 192.0.2.101 b:")
	if err := client.NetworkV1().NetNamespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("a: 192.0.2.101 b:")
}

func addresses(list *networkv1.HostSubnetList, err error) string {
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, host := range list.Items {
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s: %s", host.Name, strings.Join(sorted(host.EgressIPs), " "))))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}
