package join

import (
	"bytes"
	"encoding/pem"
	"testing"
)

// FuzzToken checks that formatting an accepted token returns the same text.
func FuzzToken(f *testing.F) {
	f.Add(Token{Authority: string(bytes.Repeat([]byte{'a'}, 64)), ID: "abcdef", Secret: string(bytes.Repeat([]byte{'0'}, 40))}.String())
	f.Add("sw1.a.b.c")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(token.String())
		if err != nil || again != token {
			t.Errorf("%q: got %q, %v", text, again, err)
		}
	})
}

// FuzzResponse checks how a host handles a response from a server that it does not trust yet. The
// host must trust only the certificate that the token pins, and must decrypt only messages that
// were encrypted for its own key.
func FuzzResponse(f *testing.F) {
	token := Token{Authority: string(bytes.Repeat([]byte{'a'}, 64)), ID: "abcdef", Secret: string(bytes.Repeat([]byte{'0'}, 40))}
	key, err := NewSealKey()
	if err != nil {
		f.Fatal(err)
	}
	other := token
	other.Secret = string(bytes.Repeat([]byte{'1'}, 40))
	sealed, err := other.Seal(key.PublicKey().Bytes(), []byte("message"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add(make([]byte, 32)) // an all-zero public key, which is invalid
	f.Add(pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: []byte{0x30, 0}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if authority, ok := token.Trusted(data); ok {
			t.Errorf("trusted %q", authority)
		}
		if message, err := token.Open(key, data); err == nil {
			t.Errorf("opened %q", message)
		}
	})
}

// FuzzSeal checks, for every key that a host can send, that a message is encrypted only for that
// key and not for other hosts' keys.
func FuzzSeal(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add([]byte("key"))
	f.Fuzz(func(t *testing.T, public []byte) {
		token := Token{Authority: "a", ID: "b", Secret: "c"}
		sealed, err := token.Seal(public, []byte("a private key"))
		if err == nil && (len(public) != 32 || bytes.Contains(sealed, []byte("a private key"))) {
			t.Errorf("%x: sealed as %q", public, sealed)
		}
	})
}
