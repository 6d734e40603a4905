package kube

import (
	"crypto/rand"
	"crypto/rsa"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// TestOldServiceAccountKeyVerifiesTokens checks that the new key signs tokens, and that both keys
// verify them.
func TestOldServiceAccountKeyVerifiesTokens(t *testing.T) {
	dir := t.TempDir()
	account := corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "robot", UID: "1"}}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "robot-token"}}
	tokens := map[string]string{}
	for _, name := range []string{"old", "new", "other"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := keyutil.WriteKey(filepath.Join(dir, name), encoded); err != nil {
			t.Fatal(err)
		}
		generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
		if err != nil {
			t.Fatal(err)
		}
		claims, private := serviceaccount.LegacyClaims(account, secret)
		if tokens[name], err = generator.GenerateToken(t.Context(), claims, private); err != nil {
			t.Fatal(err)
		}
	}
	opts := options.NewServerRunOptions()
	server := &APIServer{
		ServiceAccountKeyFile: filepath.Join(dir, "new"), ServiceAccountKeyFiles: []string{filepath.Join(dir, "new"), filepath.Join(dir, "old")},
		Domain: "cluster.local",
	}
	server.fillAuthentication(opts)
	config, err := opts.Authentication.ToAuthenticationConfig()
	if err != nil {
		t.Fatal(err)
	}
	validator, err := serviceaccount.NewLegacyValidator(false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	authenticator := serviceaccount.JWTTokenAuthenticator([]string{serviceaccount.LegacyIssuer}, config.ServiceAccountPublicKeysGetter, nil, validator)
	for name, want := range map[string]bool{"old": true, "new": true, "other": false} {
		resp, ok, err := authenticator.AuthenticateToken(t.Context(), tokens[name])
		if ok != want || want && (err != nil || resp.User.GetName() != "system:serviceaccount:shop:robot") {
			t.Errorf("token of the %s key: %v, %v, %v", name, ok, resp, err)
		}
	}
	if opts.ServiceAccountSigningKeyFile != filepath.Join(dir, "new") {
		t.Errorf("the signing key is %s", opts.ServiceAccountSigningKeyFile)
	}
}
