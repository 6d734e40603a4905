// Package grant stores the scopes that users granted to clients, in OAuthClientAuthorization
// objects named `<user>:<client>`.
package grant

import (
	"context"
	"fmt"
	"slices"

	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/tenant"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Grants reads and writes user grants.
type Grants struct {
	Authorizations store.Objects[*oauthv1.OAuthClientAuthorization]
	// Quota limits the number of grants for each user. A limit is necessary because users can
	// create service accounts, which can be clients, and a grant can outlive its client.
	Quota *store.Quota[*oauthv1.OAuthClientAuthorization]
}

func name(user *userv1.User, c *client.Client) string { return user.Name + ":" + c.ID }

// Scopes returns the scopes that a user granted to a client. It ignores a grant if it was made by a
// deleted user with the same name, or to a deleted service account with the same name.
func (g *Grants) Scopes(ctx context.Context, user *userv1.User, c *client.Client) ([]string, error) {
	grant, err := g.Authorizations.Get(ctx, name(user, c))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read grants of user %q: %w", user.Name, err)
	case grant.UserUID != string(user.UID) || !c.Owns(grant):
		return nil, nil
	}
	return grant.Scopes, nil
}

// attempts is the maximum number of attempts to update a grant when updates conflict.
const attempts = 5

// Add adds scopes to a user's grant to a client.
func (g *Grants) Add(ctx context.Context, user *userv1.User, c *client.Client,
	scopes []string) (err error) {
	ctx = tenant.Mark{Name: tenant.User(user.Name)}.With(ctx)
	for range attempts {
		err = g.add(ctx, user, c, scopes)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("store grant of user %q: %w", user.Name, err)
	}
	return nil
}

func (g *Grants) add(ctx context.Context, user *userv1.User, c *client.Client, scopes []string) error {
	grant, err := g.Authorizations.Get(ctx, name(user, c))
	if apierrors.IsNotFound(err) {
		if err := g.Quota.Add(ctx, user.Name); err != nil {
			return err
		}
		_, err = g.Authorizations.Create(ctx, &oauthv1.OAuthClientAuthorization{
			ObjectMeta: metav1.ObjectMeta{Name: name(user, c), Annotations: c.Annotations()},
			ClientName: c.ID, UserName: user.Name, UserUID: string(user.UID), Scopes: scopes,
		})
		return err
	}
	if err != nil {
		return err
	}
	changed := grant.DeepCopy()
	if changed.UserUID != string(user.UID) || !c.Owns(changed) {
		changed.UserUID, changed.Annotations, changed.Scopes = string(user.UID), c.Annotations(), nil
	}
	for _, scope := range scopes {
		if !slices.Contains(changed.Scopes, scope) {
			changed.Scopes = append(changed.Scopes, scope)
		}
	}
	_, err = g.Authorizations.Update(ctx, changed)
	return err
}
