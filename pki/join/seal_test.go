package join

import (
	"bytes"
	"testing"
)

func TestSealedMessageCanOnlyBeOpenedByHostWithToken(t *testing.T) {
	ca := authority(t)
	token, err := New(ca)
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(ca)
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewSealKey()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := NewSealKey()
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("private key of the authority")
	sealed, err := token.Seal(key.PublicKey().Bytes(), message)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, message) {
		t.Error("the sealed message contains the plain text")
	}
	if again, _ := token.Seal(key.PublicKey().Bytes(), message); bytes.Equal(again, sealed) {
		t.Error("two messages have the same key")
	}
	if opened, err := token.Open(key, sealed); err != nil || !bytes.Equal(opened, message) {
		t.Errorf("got %q, %v", opened, err)
	}
	if _, err := other.Open(key, sealed); err == nil {
		t.Error("Open accepted another token")
	}
	if _, err := token.Open(foreign, sealed); err == nil {
		t.Error("Open accepted the key of another host")
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, text := range map[string][]byte{"changed": changed, "cut off": sealed[:40], "short": sealed[:10], "empty": nil} {
		if _, err := token.Open(key, text); err == nil {
			t.Errorf("a %s message opens", name)
		}
	}
	if _, err := token.Seal([]byte("no key"), message); err == nil {
		t.Error("Seal accepted an invalid key")
	}
}
