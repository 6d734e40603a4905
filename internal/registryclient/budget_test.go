package registryclient

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
)

// open begins work and fails the test if this is not possible.
func open(t *testing.T, b *Budget, owner string) *Account {
	t.Helper()
	account, err := b.Open(owner)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

func TestBudgetIsFairToOwners(t *testing.T) {
	b := NewBudget(50)
	var accounts []*Account
	for n := range 2 {
		account := open(t, b, fmt.Sprint("large-", n))
		if err := account.take(defaultOwnerBytes); err != nil {
			t.Fatal(err)
		}
		if err := account.take(1); err == nil || errors.Is(err, ErrBusy) {
			t.Errorf("an owner reads more than its limit: %v", err)
		}
		if err := b.Join(account.owner).take(1); err == nil {
			t.Error("an owner exceeds its limit with a second piece of work")
		}
		accounts = append(accounts, account)
	}
	last := open(t, b, "last")
	if err := last.take(smallWork + 1); !errors.Is(err, ErrBusy) {
		t.Errorf("large work uses the reserve: %v", err)
	}
	if err := last.take(smallWork); err != nil {
		t.Errorf("small work is rejected: %v", err)
	}
	accounts[0].Close()
	if err := last.take(smallWork); err != nil {
		t.Errorf("released bytes are not available: %v", err)
	}
}

func TestLargerImportsHaveLargerBudget(t *testing.T) {
	for images, want := range map[int]int64{1: defaultOwnerBytes, 50: defaultOwnerBytes, 1000: 1000 * imageBytes, 100_000: maxOwnerBytes, 0: maxOwnerBytes} {
		if got := NewBudget(images).perOwner; got != want {
			t.Errorf("%d images: %d bytes, want %d", images, got, want)
		}
	}
}

func TestBudgetLimitsConcurrentWork(t *testing.T) {
	b := NewBudget(50)
	var accounts []*Account
	for n := range maxOpen {
		if n%maxOpenByOwner == 0 && n > 0 {
			if _, err := b.Open(fmt.Sprint(n/maxOpenByOwner - 1)); !errors.Is(err, ErrBusy) {
				t.Errorf("an owner exceeds its limit of concurrent work: %v", err)
			}
		}
		accounts = append(accounts, open(t, b, fmt.Sprint(n/maxOpenByOwner)))
	}
	if _, err := b.Open("other"); !errors.Is(err, ErrBusy) {
		t.Errorf("the total limit of concurrent work is exceeded: %v", err)
	}
	for _, account := range accounts {
		_ = account.take(1000)
		account.Close()
	}
	if len(b.owners) != 0 || b.total != (usage{}) {
		t.Errorf("after all work, the usage is %+v of %v", b.total, b.owners)
	}
}

func TestAccountLimitsSession(t *testing.T) {
	host := registry(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		// Ignore the error, because the client closes the connection.
		_, _ = w.Write(append([]byte("{}"), bytes.Repeat([]byte(" "), maxResponse-2)...))
	})
	s, err := Client{Account: open(t, NewBudget(50), "shop")}.Session()
	if err != nil {
		t.Fatal(err)
	}
	full := 0
	for ; err == nil && full <= defaultOwnerBytes/maxResponse; full++ {
		_, err = s.Manifest(t.Context(), fmt.Sprintf("%s/app:v%d", host, full))
	}
	if err == nil || !strings.Contains(err.Error(), "import fewer images") || full != defaultOwnerBytes/maxResponse+1 {
		t.Errorf("after %d responses: %v", full, err)
	}
}
