// Package mapping finds the User of an identity, and makes both at the first login, by one of the four mapping methods.
//
// An Identity is of exactly one User and names it with its UID; a User lists its Identities. Both must agree, so that a user who was deleted
// and made anew is another one. Source: OpenShift 3.9 Architecture, 4.8.1 (users, identities and mappings).
package mapping

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Method says what happens at the first login of an identity.
type Method string

// The mapping methods of OpenShift 3.
const (
	// Claim makes a user of the preferred name, and fails when another identity has that user.
	Claim Method = "claim"
	// Lookup makes nothing: an administrator maps identities.
	Lookup Method = "lookup"
	// Generate makes a user of the preferred name, or of that name with a number when another identity has it.
	Generate Method = "generate"
	// Add makes a user of the preferred name, or gives the identity to the user who is there.
	Add Method = "add"
)

// Methods are all mapping methods.
func Methods() []Method { return []Method{Claim, Lookup, Generate, Add} }

// Why an identity has no user.
var (
	// ErrLookup means that nobody mapped it.
	ErrLookup = errors.New("the identity is mapped to no user")
	// ErrClaim means that the user it would have is another identity's.
	ErrClaim = errors.New("the user name belongs to another identity")
)

// Mapper finds users.
type Mapper struct {
	Users      store.Objects[*userv1.User]
	Identities store.Objects[*userv1.Identity]
}

// attempts is how often objects that someone else changes at the same time are read again.
const attempts = 5

// User gives the user of an identity that a provider has authenticated.
func (m *Mapper) User(ctx context.Context, provider string, method Method, who *idp.Identity) (user *userv1.User, err error) {
	for range attempts {
		user, err = m.try(ctx, provider, method, who)
		if !kerrors.IsConflict(err) && !kerrors.IsAlreadyExists(err) {
			return user, err
		}
	}
	return nil, err
}

func (m *Mapper) try(ctx context.Context, provider string, method Method, who *idp.Identity) (*userv1.User, error) {
	name := IdentityName(provider, who.UserName)
	identity, err := m.Identities.Get(ctx, name)
	switch {
	case err == nil:
		return m.mapped(ctx, identity)
	case !kerrors.IsNotFound(err):
		return nil, fmt.Errorf("find identity: %w", err)
	case method == Lookup:
		return nil, ErrLookup
	}
	user, err := m.assign(ctx, method, name, who)
	if err != nil {
		return nil, err
	}
	_, err = m.Identities.Create(ctx, &userv1.Identity{
		ObjectMeta: metav1.ObjectMeta{Name: name}, ProviderName: provider, ProviderUserName: strings.TrimPrefix(name, provider+":"),
		User: corev1.ObjectReference{Name: user.Name, UID: user.UID}, Extra: who.Extra(),
	})
	if err != nil {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	return user, nil
}

// mapped gives the user of an identity that exists, if both name each other.
func (m *Mapper) mapped(ctx context.Context, identity *userv1.Identity) (*userv1.User, error) {
	if identity.User.Name == "" {
		return nil, ErrLookup
	}
	user, err := m.Users.Get(ctx, identity.User.Name)
	switch {
	case kerrors.IsNotFound(err):
		return nil, ErrLookup
	case err != nil:
		return nil, fmt.Errorf("find user: %w", err)
	case user.UID != identity.User.UID || !slices.Contains(user.Identities, identity.Name):
		return nil, ErrLookup
	}
	return user, nil
}

// maxGenerated is how many numbers Generate tries.
const maxGenerated = 1000

// assign finds or makes the user of a new identity, and puts the identity into its list. The identity itself is made afterwards: who is
// interrupted in between finds its own name in the list at the next login.
func (m *Mapper) assign(ctx context.Context, method Method, identity string, who *idp.Identity) (*userv1.User, error) {
	preferred := who.Preferred()
	for number := 1; number < maxGenerated; number++ {
		name := preferred
		if number > 1 {
			name = fmt.Sprintf("%s%d", preferred, number)
		}
		user, err := m.Users.Get(ctx, name)
		switch {
		case kerrors.IsNotFound(err):
			return m.Users.Create(ctx, &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: name}, FullName: who.Name, Identities: []string{identity}})
		case err != nil:
			return nil, fmt.Errorf("find user: %w", err)
		case slices.Contains(user.Identities, identity):
			return user, nil
		case len(user.Identities) == 0 || method == Add:
			changed := user.DeepCopy()
			changed.Identities = append(changed.Identities, identity)
			return m.Users.Update(ctx, changed)
		case method != Generate:
			return nil, ErrClaim
		}
	}
	return nil, ErrClaim
}

// encoded marks provider user names that an object's name cannot hold.
const encoded = "b64:"

// IdentityName is the name of the Identity object. A provider's user name with characters that are not possible there, or that would let it
// be read as another, stands in base64.
func IdentityName(provider, user string) string {
	if strings.ContainsAny(user, "/:%") || user == "." || user == ".." {
		user = encoded + base64.RawURLEncoding.EncodeToString([]byte(user))
	}
	return provider + ":" + user
}
