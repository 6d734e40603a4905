package token

import (
	"context"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Activity puts off the end of tokens that are used. inactivityTimeoutSeconds of a token is its age at which it ends; with each use it is to
// be the present age and the timeout of its client, and it is written when a third of that has passed.
type Activity struct {
	Tokens  store.Objects[*oauthv1.OAuthAccessToken]
	Clients *client.Registry
	// Timeout is that of clients that say nothing, in seconds, now.
	Timeout func() int32
	// Report takes errors.
	Report func(error)

	used chan *oauthv1.OAuthAccessToken
}

// NewActivity makes one that Run serves.
func NewActivity(tokens store.Objects[*oauthv1.OAuthAccessToken], clients *client.Registry, timeout func() int32, report func(error)) *Activity {
	return &Activity{Tokens: tokens, Clients: clients, Timeout: timeout, Report: report, used: make(chan *oauthv1.OAuthAccessToken, 1000)}
}

// Used takes note of a token's use. It never waits: when there is too much to do, a later use is noted.
func (a *Activity) Used(token *oauthv1.OAuthAccessToken) {
	select {
	case a.used <- token:
	default:
	}
}

// Run writes what was noted, until ctx ends.
func (a *Activity) Run(ctx context.Context) {
	written := map[types.UID]int32{} // what stands in the store now, as long as the cache may be behind
	for {
		select {
		case <-ctx.Done():
			return
		case token := <-a.used:
			if token.InactivityTimeoutSeconds < written[token.UID] {
				continue
			}
			end, err := a.extend(ctx, token, time.Now())
			if err != nil && !kerrors.IsConflict(err) && !kerrors.IsNotFound(err) {
				a.Report(err)
			}
			if end == 0 {
				continue
			}
			if len(written) > maxWritten {
				clear(written)
			}
			written[token.UID] = end
		}
	}
}

// maxWritten limits what is remembered.
const maxWritten = 10_000

// extend writes a later end if it is time to, and gives it.
func (a *Activity) extend(ctx context.Context, token *oauthv1.OAuthAccessToken, now time.Time) (int32, error) {
	timeout := a.Timeout()
	if c, err := a.Clients.Find(ctx, token.ClientName); err == nil {
		timeout = or(c.InactivityTimeout, timeout)
	}
	age := int32(now.Sub(token.CreationTimestamp.Time).Seconds())
	if timeout <= 0 || token.InactivityTimeoutSeconds-age > timeout-timeout/3 {
		return 0, nil
	}
	changed := token.DeepCopy()
	changed.InactivityTimeoutSeconds = age + timeout
	_, err := a.Tokens.Update(ctx, changed)
	return changed.InactivityTimeoutSeconds, err
}
