package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
)

// authority returns a new cluster's CA certificate.
func authority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestParseReturnsFormattedToken(t *testing.T) {
	token, err := New(authority(t))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := Parse(" " + token.String() + "\n")
	if err != nil || parsed != token {
		t.Errorf("Parse returned %+v, %v", parsed, err)
	}
}

func TestTokenTrustsOnlyAuthorityOfCluster(t *testing.T) {
	own, other := authority(t), authority(t)
	token, err := New(own)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		data []byte
		want bool
	}{
		"authority of the cluster": {own, true}, "another cluster": {other, false}, "no certificate": {[]byte("no certificate"), false},
	} {
		if _, got := token.Trusted(tt.data); got != tt.want {
			t.Errorf("%s: trusted %t", name, got)
		}
	}
	if _, err := New([]byte("no certificate")); err == nil {
		t.Error("New accepted an invalid authority")
	}
}

func TestSecretHashMatchesOnlyItsToken(t *testing.T) {
	ca := authority(t)
	first, _ := New(ca)
	second, _ := New(ca)
	if !first.Matches([]byte(first.SecretHash())) || first.Matches([]byte(second.SecretHash())) || first.Matches(nil) {
		t.Error("the hash matches the wrong token")
	}
	if strings.Contains(first.SecretHash(), first.Secret) {
		t.Error("the hash contains the secret")
	}
	moved := first
	moved.ID = second.ID
	if moved.Matches([]byte(first.SecretHash())) {
		t.Error("the secret matches under another ID")
	}
}

func TestParseErrorDoesNotContainText(t *testing.T) {
	token, err := New(authority(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":         "",
		"cut off":       token.String()[:len(token.String())-1],
		"other version": strings.Replace(token.String(), "sw1", "sw2", 1),
		"upper case":    strings.ToUpper(token.String()),
		"a suffix":      token.String() + ".x",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			if !errors.Is(err, ErrFormat) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), token.Secret) {
				t.Error("the error contains the secret")
			}
		})
	}
}
