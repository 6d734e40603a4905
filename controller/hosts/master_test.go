package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/pki/join"
)

// masterToken stores a token for a master.
func (f fixture) masterToken(t *testing.T) join.Token {
	t.Helper()
	token := f.createToken(t, time.Hour)
	secrets := f.client.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(t.Context(), secretName(token.ID), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[roleKey] = []byte(join.RoleMaster)
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return token
}

// sendMaster posts a join request from a host that joins as a master. The existing master calls
// admit to admit the host.
func (f fixture) sendMaster(t *testing.T, request join.Request, admit func(context.Context, join.Request) (*join.Master, error)) *httptest.ResponseRecorder {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	d := f.door()
	d.Master = admit
	recorder := httptest.NewRecorder()
	d.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, join.Path, bytes.NewReader(body)))
	return recorder
}

func admitAll(context.Context, join.Request) (*join.Master, error) {
	return &join.Master{Name: "second", Files: map[string][]byte{"pki/ca.key": []byte("private")}}, nil
}

func masterRequest(t *testing.T, token join.Token) (join.Request, func(sealed []byte) ([]byte, error)) {
	t.Helper()
	key, err := join.NewSealKey()
	if err != nil {
		t.Fatal(err)
	}
	request := requestFor(token)
	request.Role, request.Version, request.PeerURL, request.Key = "", version.Slipway(), "https://192.0.2.2:7001", key.PublicKey().Bytes()
	return request, func(sealed []byte) ([]byte, error) { return token.Open(key, sealed) }
}

func TestMasterGetsPrivateKeysEncrypted(t *testing.T) {
	f := newFixture(t)
	request, open := masterRequest(t, f.masterToken(t))
	recorder := f.sendMaster(t, request, admitAll)
	if recorder.Code != http.StatusOK || strings.Contains(recorder.Body.String(), "private") {
		t.Fatalf("got %d %s", recorder.Code, recorder.Body)
	}
	var response join.Response
	if err := json.Unmarshal(recorder.Body.Bytes(), &response); err != nil {
		t.Fatal(err)
	}
	message, err := open(response.Master)
	var master join.Master
	if err != nil || json.Unmarshal(message, &master) != nil || string(master.Files["pki/ca.key"]) != "private" {
		t.Errorf("got %q, %v", message, err)
	}
	hosts, err := f.register.read(t.Context())
	if host := hosts["second"]; err != nil || host.Role != join.RoleMaster || host.Joined.Time.IsZero() {
		t.Errorf("the register contains %+v, %v", host, err)
	}
}

func TestNodeTokenGetsNoPrivateKeys(t *testing.T) {
	f := newFixture(t)
	request, _ := masterRequest(t, f.createToken(t, time.Hour))
	recorder := f.sendMaster(t, request, func(context.Context, join.Request) (*join.Master, error) {
		t.Error("the host was admitted as a master")
		return admitAll(t.Context(), request)
	})
	var response join.Response
	if err := json.Unmarshal(recorder.Body.Bytes(), &response); err != nil || response.Role != join.RoleNode || response.Master != nil {
		t.Errorf("got %d %s", recorder.Code, recorder.Body)
	}
}

func TestMasterTokenIsNotBearerToken(t *testing.T) {
	f := newFixture(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api", nil)
	r.Header.Set("Authorization", "Bearer "+f.masterToken(t).String())
	if _, ok, err := (bearer{f.tokens, f.register}).AuthenticateRequest(r); ok || err != nil {
		t.Errorf("got %t, %v", ok, err)
	}
}

func TestRejectedMastersGetReason(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*join.Request)
		code int
		want string
	}{
		"other version":            {func(r *join.Request) { r.Version = "1" }, http.StatusForbidden, "install the same version"},
		"address of another host":  {func(r *join.Request) { r.PeerURL = "https://192.0.2.3:7001" }, http.StatusForbidden, "set etcdConfig.peerAddress"},
		"address without TLS":      {func(r *join.Request) { r.PeerURL = "http://192.0.2.2:7001" }, http.StatusForbidden, "set etcdConfig.peerAddress"},
		"key of another algorithm": {func(r *join.Request) { r.Key = []byte("key") }, http.StatusForbidden, "contains no valid key"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			request, _ := masterRequest(t, f.masterToken(t))
			tt.edit(&request)
			recorder := f.sendMaster(t, request, admitAll)
			if recorder.Code != tt.code || !strings.Contains(recorder.Body.String(), tt.want) {
				t.Errorf("got %d %q, want %q", recorder.Code, recorder.Body, tt.want)
			}
		})
	}
}

func TestPreparingMasterRespondsWithRetryAfter(t *testing.T) {
	f := newFixture(t)
	token := f.masterToken(t)
	request, _ := masterRequest(t, token)
	recorder := f.sendMaster(t, request, func(context.Context, join.Request) (*join.Master, error) { return nil, ErrPreparing })
	if recorder.Code != http.StatusServiceUnavailable || recorder.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v", recorder.Code, recorder.Header())
	}
	if recorder := f.sendMaster(t, request, admitAll); recorder.Code != http.StatusOK {
		t.Errorf("the repetition returned %d %s", recorder.Code, recorder.Body)
	}
}

func TestMasterTokenGivesKeysToOneHost(t *testing.T) {
	f := newFixture(t)
	token := f.masterToken(t)
	request, _ := masterRequest(t, token)
	expect := func(name string, request join.Request, code int) {
		t.Helper()
		if recorder := f.sendMaster(t, request, admitAll); recorder.Code != code {
			t.Errorf("%s: %d %s, want %d", name, recorder.Code, recorder.Body, code)
		}
	}
	expect("first request", request, http.StatusOK)
	expect("its repetition", request, http.StatusOK)
	thief, _ := masterRequest(t, token)
	expect("another host with the name of the first one, which has no node yet", thief, http.StatusForbidden)

	removed := metav1.NewTime(now().Add(time.Second))
	if err := f.register.change(t.Context(), request.NodeName, func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	expect("another host after the removal", thief, http.StatusForbidden)
	expect("the removed host", request, http.StatusForbidden)
	again, _ := masterRequest(t, f.masterToken(t))
	expect("the removed host with a new token", again, http.StatusOK)
}

func TestMemberOfRemovedMasterIsRemovedBeforeNode(t *testing.T) {
	f := newFixture(t)
	if err := RecordMaster(t.Context(), f.client, "second", "192.0.2.2"); err != nil {
		t.Fatal(err)
	}
	past := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second", Finalizers: []string{finalizer}, DeletionTimestamp: &past}}
	if err := f.client.(*fake.Clientset).Tracker().Add(node); err != nil {
		t.Fatal(err)
	}
	var removed []string
	fail := errors.New("no quorum")
	r := &remover{client: f.client, register: f.register, removeMaster: func(_ context.Context, name, address string) error {
		removed = append(removed, name+" "+address)
		return fail
	}}
	host := Host{Role: join.RoleMaster, Address: "192.0.2.2", Removed: &past}
	if err := r.finalize(t.Context(), node, host); !errors.Is(err, fail) || !slices.Equal(removed, []string{"second 192.0.2.2"}) {
		t.Errorf("got %v, removed %q", err, removed)
	}
	if stored, err := f.client.CoreV1().Nodes().Get(t.Context(), "second", metav1.GetOptions{}); err != nil || len(stored.Finalizers) == 0 {
		t.Errorf("the node was deleted: %v", err)
	}
	if err := r.finalize(t.Context(), node, Host{Removed: &past}); err != nil || len(removed) != 1 {
		t.Errorf("a node without a control plane: %v, removed %q", err, removed)
	}
}

func TestAddressesOfMastersAreThoseOfNodes(t *testing.T) {
	f := newFixture(t)
	for name, address := range map[string]string{"restored": "192.0.2.2", "rejected": "192.0.2.3", "removed": "192.0.2.4"} {
		if err := RecordMaster(t.Context(), f.client, name, address); err != nil {
			t.Fatal(err)
		}
	}
	removed := metav1.NewTime(now().Add(time.Second))
	if err := f.register.change(t.Context(), "removed", func(h *Host) { h.Removed = &removed }); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "restored"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "restored"}, {Type: corev1.NodeInternalIP, Address: "fd00::5"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.5"},
	}}}
	if err := f.client.(*fake.Clientset).Tracker().Add(node); err != nil {
		t.Fatal(err)
	}
	masters, err := Masters(t.Context(), f.client)
	if want := map[string]string{"restored": "192.0.2.5"}; err != nil || !maps.Equal(masters, want) {
		t.Errorf("got %v, %v, want %v", masters, err, want)
	}
}
