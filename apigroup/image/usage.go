package image

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/apigroup/image/retention"
	"github.com/slipway-platform/slipway/apiserver"
)

// usagePath is the API server path that serves the image usage. Users need a role that grants
// access to the path.
const usagePath = "/slipway/image-usage"

// usageTimeout is the timeout for collecting the usage.
const usageTimeout = 30 * time.Second

// usageView returns the handler for image usage. The handler processes one request at a time,
// because each request reads all images.
func usageView(deps apiserver.Deps) (apiserver.Handler, error) {
	images, err := imageclient.NewForConfig(deps.Loopback)
	if err != nil {
		return apiserver.Handler{}, fmt.Errorf("create image client: %w", err)
	}
	turn := make(chan struct{}, 1)
	return apiserver.View(usagePath, usageTimeout, http.StatusInternalServerError, func(ctx context.Context, r *http.Request) (any, error) {
		rules, err := rulesOf(r.URL.Query())
		if err != nil {
			return nil, err
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, apierrors.NewTooManyRequests("another request for image usage is still in progress; try again later", 1)
		}
		return readUsage(ctx, rules, images, deps.Dynamic, time.Now())
	}), nil
}

func readUsage(ctx context.Context, rules retention.Rules, images imageclient.ImageV1Interface, client dynamic.Interface, now time.Time) (retention.Usage, error) {
	state, err := rules.Read(ctx, images, client, now)
	if err != nil {
		return retention.Usage{}, fmt.Errorf("read images and their users: %w", err)
	}
	return rules.Usage(state, now), nil
}

// rulesOf parses rules from query parameters, which have the same names as the flags of `oc adm
// prune images`.
func rulesOf(query url.Values) (rules retention.Rules, err error) {
	rules = retention.Rules{Revisions: 3, Younger: time.Hour, External: true}
	const revisions, younger = "keep-tag-revisions", "keep-younger-than"
	if text := query.Get(revisions); text != "" {
		if rules.Revisions, err = strconv.Atoi(text); err != nil || rules.Revisions < 0 {
			return rules, apierrors.NewBadRequest(fmt.Sprintf("%s is %q; write a number that is not negative", revisions, text))
		}
	}
	if text := query.Get(younger); text != "" {
		if rules.Younger, err = time.ParseDuration(text); err != nil || rules.Younger < 0 {
			return rules, apierrors.NewBadRequest(fmt.Sprintf("%s is %q; write a duration such as 60m", younger, text))
		}
	}
	return rules, nil
}
