package attack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestOldRouteCannotTakeHostThroughIngress makes an Ingress the owner of an old route. The Ingress
// has the same host as the victim's route, which is newer than the old route. The oldest route owns
// a host.
func TestOldRouteCannotTakeHostThroughIngress(t *testing.T) {
	s := tenants(t)
	host := s.shop + ".example.com"
	sum := sha256.Sum256([]byte(host + "/"))
	// The controller gives this name to the Ingress's route.
	name := "thief-" + hex.EncodeToString(sum[:])[:10]
	path := func(namespace, name string) string {
		return kit.GroupPath("route.openshift.io", namespace, "routes") + name
	}
	manifest := func(name, host string) string {
		return fmt.Sprintf("{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: %s}, spec: {host: %s, to: {kind: Service, name: web}}}", name, host)
	}
	s.mallory.May("POST", kit.CorePath(s.evil, "services"), "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}")
	var old routev1.Route
	decode(t, s.mallory.May("POST", path(s.evil, ""), manifest(name, "old."+host)), &old)
	// Wait, because the API server's timestamps have a resolution of one second.
	waitAfter := func(route routev1.Route) {
		s.WaitFor("the second after the creation of "+route.Name, func(context.Context) error {
			var dry corev1.ConfigMap
			decode(t, s.alice.May("POST", kit.CorePath(s.shop, "configmaps?"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: clock}}"), &dry)
			if !route.CreationTimestamp.Before(&dry.CreationTimestamp) {
				return fmt.Errorf("the time is still %s", dry.CreationTimestamp)
			}
			return nil
		})
	}
	waitAfter(old)
	var web routev1.Route
	decode(t, s.alice.May("POST", path(s.shop, ""), manifest("web", host)), &web)
	waitAfter(web) // the Ingress recreates its route, which must be newer than this route

	var ingress struct{ Metadata struct{ UID string } }
	decode(t, s.mallory.May("POST", kit.GroupPath("networking.k8s.io", s.evil, "ingresses"), fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: thief},
		spec: {rules: [{host: %s, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}`, host)), &ingress)
	s.mallory.May("PATCH", path(s.evil, "/"+name), fmt.Sprintf(
		`{"metadata":{"ownerReferences":[{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","name":"thief","uid":%q,"controller":true}]}}`, ingress.Metadata.UID))

	admitted := func(user *kit.User, at string) (corev1.ConditionStatus, error) {
		text, err := user.Try("GET", at, "")
		if err != nil {
			return "", err
		}
		var route routev1.Route
		decode(t, text, &route)
		for _, router := range route.Status.Ingress {
			for _, condition := range router.Conditions {
				if condition.Type == routev1.RouteAdmitted && router.Host == host {
					return condition.Status, nil
				}
			}
		}
		return "", fmt.Errorf("no router has decided about host %q of %s", host, at)
	}
	for at, of := range map[string]struct {
		user *kit.User
		want corev1.ConditionStatus
	}{path(s.evil, "/"+name): {s.mallory, corev1.ConditionFalse}, path(s.shop, "/web"): {s.alice, corev1.ConditionTrue}} {
		var got corev1.ConditionStatus
		s.WaitFor("the router to decide about "+at, func(context.Context) (err error) {
			got, err = admitted(of.user, at)
			return err
		})
		if got != of.want {
			t.Errorf("%s: admitted is %s, want %s", at, got, of.want)
		}
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
