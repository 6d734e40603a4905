package describe

import (
	"fmt"
	"strings"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	userv1 "github.com/openshift/api/user/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cli/objects"
)

// user writes a user. For each of the user's identities that does not refer to the user, it also
// writes an error.
func user(p *page, u *userv1.User) error {
	p.metadata(u.ObjectMeta)
	if u.FullName != "" {
		p.field("Full Name", u.FullName)
	}
	var identities []string
	for _, name := range u.Identities {
		text := name
		identity, err := objects.Get[userv1.Identity](p.ctx, p.client, userv1.GroupVersion.WithResource("identities"), "", name)
		switch {
		case apierrors.IsNotFound(err):
			text += " (Error: Identity does not exist)"
		case err != nil:
			text += fmt.Sprintf(" (Error: %v)", err)
		case identity.User.Name != u.Name || identity.User.UID != u.UID:
			text += fmt.Sprintf("(Error: Identity belongs to the user %q)", identity.User.Name)
		}
		identities = append(identities, text)
	}
	p.lines("Identities", identities)
	return nil
}

// identity writes an identity. If the identity's user does not exist or has a different UID, it
// writes an error.
func identity(p *page, i *userv1.Identity) error {
	p.metadata(i.ObjectMeta)
	p.field("Provider", i.ProviderName)
	p.field("Provider User Name", i.ProviderUserName)
	name := i.User.Name
	if name != "" {
		user, err := objects.Get[userv1.User](p.ctx, p.client, userv1.GroupVersion.WithResource("users"), "", name)
		switch {
		case apierrors.IsNotFound(err):
			name += " (Error: User does not exist)"
		case err != nil:
			name += fmt.Sprintf(" (Error: %v)", err)
		case user.UID != i.User.UID:
			name += " (Error: Actual user UID is " + string(user.UID) + ")"
		}
	}
	p.field("User Name", name)
	p.field("User UID", i.User.UID)
	p.lines("Extra", pairs(i.Extra))
	return nil
}

func group(p *page, g *userv1.Group) error {
	p.metadata(g.ObjectMeta)
	p.lines("Users", g.Users)
	return nil
}

func mapping(p *page, m *userv1.UserIdentityMapping) error {
	p.metadata(m.ObjectMeta)
	p.field("Identity", m.Identity.Name)
	p.field("User Name", m.User.Name)
	p.field("User UID", m.User.UID)
	return nil
}

// oauthClient writes an OAuth client without its secrets.
func oauthClient(p *page, c *oauthv1.OAuthClient) error {
	p.metadata(c.ObjectMeta)
	p.field("Secret", map[bool]string{true: "<set>", false: none}[c.Secret != ""])
	p.field("Additional Secrets", len(c.AdditionalSecrets))
	p.field("Respond With Challenges", c.RespondWithChallenges)
	p.lines("Redirect URIs", c.RedirectURIs)
	p.field("Grant Method", c.GrantMethod)
	var scopes []string
	for _, s := range c.ScopeRestrictions {
		scopes = append(scopes, s.ExactValues...)
		if s.ClusterRole != nil {
			scopes = append(scopes, fmt.Sprintf("role:%s:%s (escalation: %t)",
				strings.Join(s.ClusterRole.RoleNames, "|"), strings.Join(s.ClusterRole.Namespaces, "|"), s.ClusterRole.AllowEscalation))
		}
	}
	p.lines("Scopes", scopes)
	p.field("Access Token Max Age", seconds(c.AccessTokenMaxAgeSeconds))
	p.field("Access Token Inactivity Timeout", seconds(c.AccessTokenInactivityTimeoutSeconds))
	return nil
}

// seconds formats an optional number of seconds. nil means the server's default, and 0 means no
// limit.
func seconds(value *int32) string {
	switch {
	case value == nil:
		return "<default>"
	case *value == 0:
		return "<unlimited>"
	}
	return (time.Duration(*value) * time.Second).String()
}

func clientAuthorization(p *page, a *oauthv1.OAuthClientAuthorization) error {
	p.metadata(a.ObjectMeta)
	p.field("Client Name", a.ClientName)
	p.field("User Name", a.UserName)
	p.field("User UID", a.UserUID)
	p.list("Scopes", a.Scopes)
	return nil
}

func accessToken(p *page, t *oauthv1.OAuthAccessToken) error {
	p.token(t.ObjectMeta, t.Scopes, t.ExpiresIn, t.UserName, t.UserUID, t.ClientName)
	return nil
}

func authorizeToken(p *page, t *oauthv1.OAuthAuthorizeToken) error {
	p.token(t.ObjectMeta, t.Scopes, t.ExpiresIn, t.UserName, t.UserUID, t.ClientName)
	p.field("Redirect URI", t.RedirectURI)
	return nil
}

// token writes the fields that all kinds of tokens have.
func (p *page) token(meta metav1.ObjectMeta, scopes []string, expires int64, user, uid, client string) {
	p.metadata(meta)
	p.list("Scopes", scopes)
	p.field("Expires In", p.remaining(meta.CreationTimestamp.Time, expires))
	p.field("User Name", user)
	p.field("User UID", uid)
	p.field("Client Name", client)
}

// remaining returns the remaining lifetime of a token. If expires is 0, the token never expires.
func (p *page) remaining(created time.Time, expires int64) string {
	if expires == 0 {
		return "<never>"
	}
	remaining := created.Add(time.Duration(expires) * time.Second).Sub(p.now).Round(time.Second)
	if remaining <= 0 {
		return "<expired>"
	}
	return remaining.String()
}
