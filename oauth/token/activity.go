package token

import (
	"context"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store"
)

// Activity extends the lifetime of tokens that are used. inactivityTimeoutSeconds of a token is the
// age at which it expires. Each use sets it to the current age plus the timeout of the client, but
// only when a third of the timeout has passed.
type Activity struct {
	Tokens  store.Objects[*oauthv1.OAuthAccessToken]
	Clients *client.Registry
	// Timeout returns the default timeout of clients, in seconds.
	Timeout func() int32
	// Report receives errors.
	Report func(error)

	activity chan *oauthv1.OAuthAccessToken
}

// NewActivity returns an Activity, which needs a running Run.
func NewActivity(tokens store.Objects[*oauthv1.OAuthAccessToken], clients *client.Registry,
	timeout func() int32, report func(error)) *Activity {
	return &Activity{Tokens: tokens, Clients: clients, Timeout: timeout, Report: report, activity: make(chan *oauthv1.OAuthAccessToken, 1000)}
}

// Used records the use of a token. It never blocks: under load, a later use is recorded.
func (a *Activity) Used(token *oauthv1.OAuthAccessToken) {
	select {
	case a.activity <- token:
	default:
	}
}

// Run extends tokens until ctx ends.
func (a *Activity) Run(ctx context.Context) {
	// current values in the store, because the cache can be behind
	timeouts := map[types.UID]int32{}
	for {
		select {
		case <-ctx.Done():
			return
		case token := <-a.activity:
			if token.InactivityTimeoutSeconds < timeouts[token.UID] {
				continue
			}
			end, err := a.extend(ctx, token, time.Now())
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				a.Report(err)
			}
			if end == 0 {
				continue
			}
			if len(timeouts) > maxWritten {
				clear(timeouts)
			}
			timeouts[token.UID] = end
		}
	}
}

// maxWritten limits the number of cached values.
const maxWritten = 10_000

// extend writes and returns the extended timeout if it is time to.
func (a *Activity) extend(ctx context.Context, token *oauthv1.OAuthAccessToken,
	now time.Time) (int32, error) {
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
