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

// Activity extends the lifetime of tokens that are used. A token expires when its age in seconds
// reaches its inactivityTimeoutSeconds. It never expires if that field is 0. When a token is used,
// Activity sets the field to the token's current age plus the client's timeout. It does so only if
// at least a third of the timeout has passed since the last extension, to limit the number of
// writes.
type Activity struct {
	Tokens  store.Objects[*oauthv1.OAuthAccessToken]
	Clients *client.Registry
	// Timeout returns the default inactivity timeout for clients, in seconds.
	Timeout func() int32
	// Report is called with each error that Run encounters.
	Report func(error)

	activity chan *oauthv1.OAuthAccessToken
}

// NewActivity returns an Activity. The Activity extends tokens only while Run is running.
func NewActivity(tokens store.Objects[*oauthv1.OAuthAccessToken], clients *client.Registry,
	timeout func() int32, report func(error)) *Activity {
	return &Activity{Tokens: tokens, Clients: clients, Timeout: timeout, Report: report, activity: make(chan *oauthv1.OAuthAccessToken, 1000)}
}

// Used records that a token was used. It never blocks. Under load, it can drop the record; the next
// use then extends the token.
func (a *Activity) Used(token *oauthv1.OAuthAccessToken) {
	select {
	case a.activity <- token:
	default:
	}
}

// Run extends tokens until ctx is done.
func (a *Activity) Run(ctx context.Context) {
	// timeouts contains the values that Run has stored. A token from a stale cache does not contain
	// them.
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

// maxWritten is the maximum number of entries in timeouts.
const maxWritten = 10_000

// extend extends a token's timeout if an extension is due, and returns the stored timeout. It
// returns 0 if it stored nothing.
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
	if _, err := a.Tokens.Update(ctx, changed); err != nil {
		return 0, err
	}
	return changed.InactivityTimeoutSeconds, nil
}
