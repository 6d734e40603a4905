package hosts

import (
	"bytes"
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/pki/join"
)

// FuzzJoin sends requests that any machine on the network could send to the path that hosts use to
// join. The text TOKEN stands for a node's token. No request may obtain a master's keys, and only
// valid names and addresses may be recorded.
func FuzzJoin(f *testing.F) {
	authority := encodeCertificate(newCertificate(f, pkix.Name{CommonName: "signer"}, time.Now()))
	token, err := join.New(authority)
	if err != nil {
		f.Fatal(err)
	}
	valid, err := json.Marshal(join.Request{Token: "TOKEN", NodeName: "second", Address: "192.0.2.2", DNSDomain: "cluster.local", Key: make([]byte, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add(bytes.Replace(valid, []byte("TOKEN"), []byte("sw1.a.b.c"), 1))
	f.Add(bytes.Replace(valid, []byte("second"), []byte("../secrets"), 1))
	f.Add(bytes.Replace(valid, []byte(`"role":""`), []byte(`"role":"master"`), 1))
	f.Add([]byte(`{"token": 1}`))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName(token.ID)}, Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			idKey: []byte(token.ID), hashKey: []byte(token.SecretHash()), roleKey: []byte(join.RoleNode), usesKey: []byte("1"),
			expiryKey: []byte(time.Now().Add(time.Hour * 100).Format(time.RFC3339)),
		},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		client := fake.NewClientset(secret.DeepCopy())
		fixture := fixture{client: client, tokens: Tokens{client}, register: register{client}, authority: authority}
		d := fixture.door()
		d.Master = func(context.Context, join.Request) (*join.Master, error) {
			t.Error("a node was admitted as a master")
			return &join.Master{}, nil
		}
		body = bytes.ReplaceAll(body, []byte("TOKEN"), []byte(token.String()))
		recorder := httptest.NewRecorder()
		d.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, join.Path, bytes.NewReader(body)))
		if recorder.Code != http.StatusOK && recorder.Code != http.StatusForbidden {
			t.Errorf("%q: got %d %s", body, recorder.Code, recorder.Body)
		}
		hosts, err := fixture.register.read(t.Context())
		if err != nil || (len(hosts) > 0) != (recorder.Code == http.StatusOK) {
			t.Errorf("%q: got %d, the register contains %v, %v", body, recorder.Code, hosts, err)
		}
		for name, host := range hosts {
			address, err := netip.ParseAddr(host.Address)
			if err != nil || !address.IsGlobalUnicast() || host.Role != join.RoleNode || strings.ContainsAny(name, "/ _") {
				t.Errorf("%q: recorded %s %+v", body, name, host)
			}
		}
	})
}
