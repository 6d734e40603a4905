package hosts

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/pki/join"
)

func (f fixture) door() *door {
	return &door{Options{
		Authority: func() ([]byte, error) { return f.authority, nil },
		Response:  func() (join.Response, error) { return join.Response{Masters: []string{"192.0.2.1:8443"}}, nil },
		DNSDomain: "cluster.local", OwnNode: "own", Reserved: []string{"kubernetes", "198.51.100.1"},
		Networks: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")},
	}, f.client, f.tokens}
}

// send posts a join request and returns the response's status code and body.
func (f fixture) send(t *testing.T, request join.Request) (int, string) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	f.door().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, join.Path, bytes.NewReader(body)))
	return recorder.Code, recorder.Body.String()
}

func requestFor(token join.Token) join.Request {
	return join.Request{Token: token.String(), Role: join.RoleNode, NodeName: "second", Address: "192.0.2.2", DNSDomain: "cluster.local"}
}

func TestTokenAdmitsOneHost(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	for attempt := range 2 { // the second attempt repeats an interrupted join
		code, body := f.send(t, requestFor(token))
		if code != http.StatusOK || !strings.Contains(body, "192.0.2.1:8443") {
			t.Fatalf("attempt %d: %d %s", attempt, code, body)
		}
	}
	hosts, err := f.register.read(t.Context())
	if err != nil || hosts["second"].Address != "192.0.2.2" || hosts["second"].Group != "infra" {
		t.Errorf("the register contains %+v, %v", hosts, err)
	}
}

func TestRejectedHostsGetReason(t *testing.T) {
	tests := []struct {
		name  string
		valid time.Duration
		edit  func(*testing.T, fixture, *join.Request)
		want  string
	}{
		{"no token", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Token = "x" }, "not a complete token"},
		{"unknown token", time.Hour, func(t *testing.T, f fixture, r *join.Request) {
			token, _ := join.New(f.authority)
			r.Token = token.String()
		}, "the token does not exist"},
		{"other secret", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) {
			token, _ := join.Parse(r.Token)
			token.Secret = strings.Repeat("0", len(token.Secret))
			r.Token = token.String()
		}, "the token does not exist"},
		{"expired token", -time.Minute, func(*testing.T, fixture, *join.Request) {}, "the token has expired"},
		{"other role", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Role = "master" }, "the token is for the role node"},
		{"token of another host", time.Hour, func(t *testing.T, f fixture, r *join.Request) {
			f.send(t, *r)
			r.NodeName, r.Address = "third", "192.0.2.3"
		}, "the token is used up"},
		{"name in use", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.NodeName = "master" }, "already has a node master"},
		{"address in use", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Address = "192.0.2.1" }, "node master already has the address 192.0.2.1"},
		{"name of the API server", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.NodeName = "kubernetes" }, "belongs to the cluster itself"},
		{"name of the master's node", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.NodeName = "own" }, "belongs to the cluster itself"},
		{"name of a service", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.NodeName = "web.shop.svc" }, "belongs to the cluster itself"},
		{"name in the domain", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.NodeName = "web.cluster.local" }, "belongs to the cluster itself"},
		{"address of the platform", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Address = "198.51.100.1" }, "cannot have the address"},
		{"address of a pod", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Address = "10.128.0.9" }, "cannot have the address"},
		{"loopback address", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Address = "127.0.0.1" }, "cannot have the address"},
		{"no address", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.Address = "" }, "cannot have the address"},
		{"invalid name", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.NodeName = "a b" }, "cannot be the name of a node"},
		{"other domain", time.Hour, func(_ *testing.T, _ fixture, r *join.Request) { r.DNSDomain = "example" }, "set dnsDomain: cluster.local"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			request := requestFor(f.createToken(t, tt.valid))
			tt.edit(t, f, &request)
			code, body := f.send(t, request)
			if code != http.StatusForbidden || !strings.Contains(body, tt.want) {
				t.Errorf("got %d %q, want %q", code, body, tt.want)
			}
			if strings.Count(strings.TrimSpace(body), "\n") > 0 {
				t.Errorf("the reason has several lines: %q", body)
			}
		})
	}
}

// TestJoinWaitsForDeletionOfFormerNode uses a Node whose finalizer is removed while a host of the
// same name joins.
func TestJoinWaitsForDeletionOfFormerNode(t *testing.T) {
	f := newFixture(t)
	request := requestFor(f.createToken(t, time.Hour))
	former := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: request.NodeName, Finalizers: []string{finalizer}, DeletionTimestamp: new(metav1.Now())},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: request.Address}}},
	}
	reads := 0
	f.client.(*fake.Clientset).PrependReactor("get", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.GetAction).GetName() != former.Name {
			return false, nil, nil
		}
		reads++
		return reads < 3, &former, nil
	})
	if code, body := f.send(t, request); code != http.StatusOK || reads != 3 {
		t.Errorf("got %d %q after %d reads of the node", code, body, reads)
	}
}

func TestRevokedTokenIsUnknown(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	if err := f.tokens.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	if code, body := f.send(t, requestFor(token)); code != http.StatusForbidden || !strings.Contains(body, "revoked") {
		t.Errorf("got %d %q", code, body)
	}
	if err := f.tokens.Revoke(t.Context(), token.ID); err == nil || !strings.Contains(err.Error(), "slipway token list") {
		t.Errorf("a second revocation returned %v", err)
	}
}

func TestRemovedHostCannotRepeatJoin(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	f.send(t, requestFor(token))
	if approved, err := f.tokens.approve(t.Context(), token.ID, "second", "csr-1", false); err != nil || !approved {
		t.Fatalf("approve: %t, %v", approved, err)
	}
	removed := metav1.Now()
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	if code, body := f.send(t, requestFor(token)); code != http.StatusForbidden || !strings.Contains(body, "used up") {
		t.Errorf("got %d %q", code, body)
	}
}

func TestHostWithoutRouterIsRecorded(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	secrets := f.client.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(t.Context(), secretName(token.ID), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[noRouterKey] = []byte("true")
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	request := requestFor(token)
	if code, body := f.send(t, request); code != http.StatusForbidden || !strings.Contains(body, "omit --router") {
		t.Errorf("a host with a router: %d %q", code, body)
	}
	request.NoRouter = true
	if code, body := f.send(t, request); code != http.StatusOK {
		t.Errorf("a host without a router: %d %q", code, body)
	}
	hosts, err := f.register.read(t.Context())
	if err != nil || !hosts[request.NodeName].NoRouter {
		t.Errorf("recorded is %+v, %v", hosts, err)
	}
}

func TestUsedUpTokenHasNoAccessAfterJoin(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api", nil)
	r.Header.Set("Authorization", "Bearer "+token.String())
	accepted := func() bool {
		_, ok, _ := bearer{f.tokens, f.register}.AuthenticateRequest(r)
		return ok
	}
	joined := func(ago time.Duration) {
		t.Helper()
		err := f.register.change(t.Context(), "second", func(h *Host) { h.Joined, h.Pending = metav1.NewTime(time.Now().Add(-ago)), false })
		if err != nil {
			t.Fatal(err)
		}
	}
	f.send(t, requestFor(token))
	if !accepted() {
		t.Error("a joining host has no access")
	}
	if joined(time.Second); !accepted() {
		t.Error("a host cannot read its certificate")
	}
	if joined(2 * joinPeriod); accepted() {
		t.Error("the token has access after the join")
	}

	removed := metav1.NewTime(time.Now().Add(-joinPeriod))
	if err := f.register.change(t.Context(), "second", func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	if accepted() {
		t.Error("the token has access after the removal of its host")
	}
	token = f.createToken(t, time.Hour)
	r.Header.Set("Authorization", "Bearer "+token.String())
	f.send(t, requestFor(token))
	if !accepted() {
		t.Error("a host that is joining again has no access")
	}
}

func TestJoinTokenHasNoOtherPermissions(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	authenticate := func(value string) (string, bool, error) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api", nil)
		r.Header.Set("Authorization", "Bearer "+value)
		response, ok, err := bearer{f.tokens, f.register}.AuthenticateRequest(r)
		if !ok {
			return "", false, err
		}
		return response.User.GetName() + " " + strings.Join(response.User.GetGroups(), " "), true, err
	}
	if got, ok, err := authenticate(token.String()); !ok || err != nil || got != "system:bootstrap:"+token.ID+" system:bootstrappers "+join.Group {
		t.Errorf("got %q, %t, %v", got, ok, err)
	}
	if _, ok, err := authenticate("another-token"); ok || err != nil {
		t.Errorf("another kind of token: %t, %v", ok, err)
	}
	other, _ := join.New(f.authority)
	if _, ok, err := authenticate(other.String()); ok || err == nil {
		t.Errorf("unknown token: %t, %v", ok, err)
	}
}
