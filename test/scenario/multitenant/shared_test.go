package multitenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// common describes the projects that the tests share. Tests share projects because a project's pods
// take seconds to start.
var common struct {
	exists bool
	number int // number of failed tests, each of which makes the next test use new projects
}

// sharedTenants returns the shared projects. When the test ends, its cleanup removes everything
// else from the projects and isolates them. After a failed test, the next test gets new projects.
func sharedTenants(t *testing.T) tenants {
	t.Helper()
	s := tenantsOf(t, fmt.Sprintf("tenants-%d", common.number))
	both := []tenant{s.blue, s.red}
	if common.exists {
		s.findPods(t, both...)
	} else {
		for _, tenant := range both {
			s.createNetwork(tenant.Namespace)
		}
		s.createPods(t, both...)
		common.exists = true
	}
	t.Cleanup(func() {
		if t.Failed() {
			common.exists, common.number = false, common.number+1
			s.OC("delete", "namespace", s.blue.Namespace, s.red.Namespace, "--wait=false")
		}
	})
	t.Cleanup(func() { // this cleanup runs first, and can fail the test
		if !t.Failed() {
			s.restore(t)
		}
	})
	return s
}

// restore restores the projects' initial state.
func (s tenants) restore(t *testing.T) {
	t.Helper()
	for _, tenant := range []tenant{s.blue, s.red} {
		tenant.OC("delete", "networkpolicies,egressnetworkpolicies,routes", "--all")
		tenant.OC("delete", "pods", "-l", "app notin (near, far, distant)", "--wait=false")
		if err := tenant.deleteServices(t.Context()); err != nil {
			t.Error(err)
		}
		s.OC("patch", "namespace", tenant.Namespace, "-p", `{"metadata": {"labels": {"open": null, "purpose": null}}}`)
		s.OC("patch", "netnamespace", tenant.Namespace, "--type=merge", "-p",
			`{"egressIPs": null, "metadata": {"annotations": {"netnamespace.network.openshift.io/multicast-enabled": null}}}`)
	}
	if blue, red := s.blue.netID(), s.red.netID(); blue == red || blue == "0" || red == "0" {
		s.podNetwork("isolate-projects", s.blue.Namespace, s.red.Namespace)
	}
}

// deleteServices deletes services that do not belong to the tenant's pods.
func (t tenant) deleteServices(ctx context.Context) error {
	services := t.Client.CoreV1().Services(t.Namespace)
	list, err := services.List(context.WithoutCancel(ctx), metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	for _, service := range list.Items {
		if !slices.Contains(pods(), service.Name) {
			errs = append(errs, services.Delete(context.WithoutCancel(ctx), service.Name, metav1.DeleteOptions{}))
		}
	}
	return errors.Join(errs...)
}
