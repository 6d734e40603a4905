package login

import (
	"os"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestLoginRejectsServerWithWeakTLS(t *testing.T) {
	authority := certtest.New(t)
	trusted, err := os.ReadFile(authority.File)
	if err != nil {
		t.Fatal(err)
	}
	authority.RefuseWeak(t, func(address string) error {
		login := loginOptions{server: "https://" + address}
		return login.verify(t.Context(), trusted)
	})
}
