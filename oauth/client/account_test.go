package client

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/oauth/scope"
	"github.com/slipway-platform/slipway/oauth/store"
)

// routes contains one route, `jenkins`, which routers admitted on two hosts and rejected on a
// third.
type routes struct {
	store.Objects[*routev1.Route]
}

func (routes) Get(_ context.Context, name string) (*routev1.Route, error) {
	if name != "jenkins" {
		return nil, apierrors.NewNotFound(routev1.Resource("routes"), name)
	}
	no := []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionFalse}}
	return &routev1.Route{
		Spec:   routev1.RouteSpec{TLS: &routev1.TLSConfig{}},
		Status: routev1.RouteStatus{Ingress: []routev1.RouteIngress{{Host: "example.com"}, {Host: "second.example.com"}, {Host: "stolen.example.com", Conditions: no}}},
	}, nil
}

const reference = `{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":"jenkins"}}`

// find looks up the client for a service account with the given annotations. It also returns the
// reasons and messages of the notices.
func find(t *testing.T, annotations map[string]string) (*Client, []string, error) {
	t.Helper()
	prefixed := map[string]string{}
	for key, value := range annotations {
		prefixed[annotationPrefix+key] = value
	}
	var events []string
	accounts := &Accounts{
		Kube: fake.NewClientset(
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "proxy", Annotations: prefixed}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "proxy-token-abcde",
				Annotations: map[string]string{corev1.ServiceAccountNameKey: "proxy"}}, Type: corev1.SecretTypeServiceAccountToken}),
		Routes: routes{},
	}
	client, err := (&Registry{Accounts: accounts}).Find(t.Context(), "system:serviceaccount:myproject:proxy")
	var misconfigured *Misconfigured
	if errors.As(err, &misconfigured) {
		events = append(events, misconfigured.Notice.Account.Name+" "+misconfigured.Notice.Reason+" "+misconfigured.Notice.Message)
	}
	return client, events, err
}

func TestRedirectURIsComeFromAnnotations(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		want        []string
	}{
		{"static", map[string]string{"oauth-redirecturi.first": "https://example.com", "oauth-redirecturi.second": "https://other.com", "oauth-redirecturi.third": "nonsense"},
			[]string{"https://example.com", "https://other.com"}},
		{"a route", map[string]string{"oauth-redirectreference.first": reference}, []string{"https://example.com", "https://second.example.com"}},
		{"a route with another path", map[string]string{"oauth-redirecturi.first": "custompath", "oauth-redirectreference.first": reference},
			[]string{"https://example.com/custompath", "https://second.example.com/custompath"}},
		{"a route with another port", map[string]string{"oauth-redirecturi.first": "//:8000", "oauth-redirectreference.first": reference},
			[]string{"https://example.com:8000", "https://second.example.com:8000"}},
		{"a route with another scheme", map[string]string{"oauth-redirecturi.first": "http://", "oauth-redirectreference.first": reference},
			[]string{"http://example.com", "http://second.example.com"}},
		{"a route with another scheme, host, port and path", map[string]string{"oauth-redirecturi.first": "http://website.com:81/x", "oauth-redirectreference.first": reference},
			[]string{"http://website.com:81/x", "http://website.com:81/x"}},
		{"both", map[string]string{"oauth-redirecturi.second": "https://other.com", "oauth-redirectreference.first": reference},
			[]string{"https://example.com", "https://second.example.com", "https://other.com"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, events, err := find(t, tt.annotations)
			if err != nil || len(events) > 0 {
				t.Fatalf("%v, events %q", err, events)
			}
			if diff := cmp.Diff(tt.want, client.RedirectURIs); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventExplainsWhyAccountIsNotClient(t *testing.T) {
	const none = "system:serviceaccount:myproject:proxy has no redirectURIs; set serviceaccounts.openshift.io/oauth-redirecturi.<some-value>=<redirect> " +
		"or create a dynamic URI using serviceaccounts.openshift.io/oauth-redirectreference.<some-value>=<reference>"
	tests := []struct {
		name        string
		annotations map[string]string
		want        string
	}{
		{"nothing", nil, none},
		{"no address", map[string]string{"oauth-redirecturi.first": "custompath"}, none},
		{"another route", map[string]string{"oauth-redirectreference.first": strings.Replace(reference, "jenkins", "notexist", 1)},
			`[routes.route.openshift.io "notexist" not found, ` + none + "]"},
		{"another kind", map[string]string{"oauth-redirectreference.first": strings.Replace(reference, `"Route"`, `"Service"`, 1)},
			`[no kind "Service" is registered for version "v1", ` + none + "]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, events, _ := find(t, tt.annotations)
			if diff := cmp.Diff([]string{"proxy NoSAOAuthRedirectURIs " + tt.want}, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceAccountsAreRestrictedToTheirNamespace(t *testing.T) {
	client, _, err := find(t, map[string]string{"oauth-redirecturi.first": "https://example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"user:info": true, "user:check-access": true, "role:admin:myproject": true, "role:admin:myproject:!": true,
		"user:full": false, "user:list-projects": false, "role:admin:other": false, "role:admin:*": false,
	} {
		if err := scope.Permit(client.ScopeRestrictions, []string{text}); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestUnknownClientsAreReported(t *testing.T) {
	accounts := &Accounts{Kube: fake.NewClientset()}
	var misconfigured *Misconfigured
	if _, err := (&Registry{Accounts: accounts}).Find(t.Context(), "system:serviceaccount:a:b"); !errors.As(err, &misconfigured) || misconfigured.Notice.Account != nil {
		t.Error(err)
	}
	if _, err := (&Registry{}).Find(t.Context(), strings.Repeat("a", 300)); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}
