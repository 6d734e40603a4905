package openid

import (
	"encoding/base64"
	"testing"
	"time"
)

// FuzzIDToken verifies that an ID token is accepted only if it was issued for this client,
// identifies a user and has not expired.
func FuzzIDToken(f *testing.F) {
	for _, seed := range []string{
		`{"aud":"client","sub":"ann","exp":2000000000}`, `{"aud":["other","client"],"azp":"other","sub":"ann","exp":2e9}`, `{"aud":"client","sub":1,"exp":1e300}`,
		`{"aud":["client"],"sub":"","exp":"2000000000"}`, "null", "[]", `{"aud":{"client":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		_, _ = decode(string(payload)) // the test only checks for panics
		claims, err := decode("e30." + base64.RawURLEncoding.EncodeToString(payload) + ".")
		if err != nil || check(claims, "client", time.Unix(1_900_000_000, 0)) != nil {
			return
		}
		if subject, _ := claims["sub"].(string); subject == "" {
			t.Errorf("%s names no user", payload)
		}
		if expires, ok := claims["exp"].(float64); !ok || expires < 1_899_000_000 {
			t.Errorf("%s has expired", payload)
		}
		first(claims, []string{"sub", "email"})
	})
}
