// Package mapping finds the User for an identity. At an identity's first login, it creates the
// Identity and, depending on the mapping method, the User.
//
// An Identity refers to exactly one User and contains the User's UID. A User lists its Identities.
// Both references must agree, so that a recreated user is a different user. Source: OpenShift 3.9
// Architecture, 4.8.1 (users, identities and mappings).
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Method defines how an identity's user is found or created at the first login.
type Method string

// OpenShift 3's mapping methods.
const (
	// Claim creates a user with the preferred name. It fails if that user already has another
	// identity.
	Claim Method = "claim"
	// Lookup creates nothing. An administrator must map the identity.
	Lookup Method = "lookup"
	// Generate creates a user with the preferred name, followed by a number if the user with that
	// name already has another identity.
	Generate Method = "generate"
	// Add creates a user with the preferred name, or adds the identity to the existing user.
	Add Method = "add"
)

// Methods returns all mapping methods.
func Methods() []Method { return []Method{Claim, Lookup, Generate, Add} }

// Reasons why an identity has no user.
var (
	// ErrLookup means that the identity is not mapped.
	ErrLookup = errors.New("the identity is not mapped to a user")
	// ErrClaim means that the user already has another identity.
	ErrClaim = errors.New("the user name belongs to another identity")
)

// Mapper finds users for identities.
type Mapper struct {
	Users      store.Objects[*userv1.User]
	Identities store.Objects[*userv1.Identity]
}

// attempts is the maximum number of attempts to map an identity when updates conflict.
const attempts = 5

// User returns the user for an authenticated identity.
func (m *Mapper) User(ctx context.Context, provider string, method Method,
	identity *idp.Identity) (user *userv1.User, err error) {
	for range attempts {
		user, err = m.try(ctx, provider, method, identity)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return user, err
		}
	}
	return nil, err
}

func (m *Mapper) try(ctx context.Context, provider string, method Method,
	id *idp.Identity) (*userv1.User, error) {
	name := IdentityName(provider, id.UserName)
	identity, err := m.Identities.Get(ctx, name)
	switch {
	case err == nil:
		return m.userOf(ctx, identity)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("find identity: %w", err)
	case method == Lookup:
		return nil, ErrLookup
	}
	user, err := m.assign(ctx, method, name, id)
	if err != nil {
		return nil, err
	}
	_, err = m.Identities.Create(ctx, &userv1.Identity{
		ObjectMeta: metav1.ObjectMeta{Name: name}, ProviderName: provider, ProviderUserName: strings.TrimPrefix(name, provider+":"),
		User: corev1.ObjectReference{Name: user.Name, UID: user.UID}, Extra: id.Extra(),
	})
	if err != nil {
		return nil, fmt.Errorf("create identity: %w", err)
	}
	return user, nil
}

// userOf returns the user for an existing identity if the identity and the user refer to each
// other.
func (m *Mapper) userOf(ctx context.Context, identity *userv1.Identity) (*userv1.User, error) {
	if identity.User.Name == "" {
		return nil, ErrLookup
	}
	user, err := m.Users.Get(ctx, identity.User.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrLookup
	case err != nil:
		return nil, fmt.Errorf("find user: %w", err)
	case user.UID != identity.User.UID || !slices.Contains(user.Identities, identity.Name):
		return nil, ErrLookup
	}
	return user, nil
}

// maxGenerated is the highest number that Generate appends to a name.
const maxGenerated = 1000

// assign finds or creates the user for a new identity, and adds the identity to the user's list.
// The caller then creates the identity. If the process is interrupted before that, the next login
// finds the user by the identity's name in the list.
func (m *Mapper) assign(ctx context.Context, method Method, identity string,
	id *idp.Identity) (*userv1.User, error) {
	preferred := id.Preferred()
	for number := 1; number < maxGenerated; number++ {
		name := preferred
		if number > 1 {
			name = fmt.Sprintf("%s%d", preferred, number)
		}
		user, err := m.Users.Get(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return m.Users.Create(ctx, &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: name}, FullName: id.Name, Identities: []string{identity}})
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

// encoded is the prefix of a user name that is encoded in base64. Other user names never begin with
// this prefix.
const encoded = "b64:"

// IdentityName returns the name for an Identity object. It encodes the user name in base64 if the
// name contains characters that are invalid or ambiguous in an object name.
func IdentityName(provider, user string) string {
	if strings.ContainsAny(user, "/:%") || user == "." || user == ".." {
		user = encoded + base64.RawURLEncoding.EncodeToString([]byte(user))
	}
	return provider + ":" + user
}
