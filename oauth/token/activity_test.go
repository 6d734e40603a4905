package token

import (
	"context"
	"errors"
	"testing"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
)

func TestUseExtendsLifetimeOfToken(t *testing.T) {
	const timeout = 600
	own := int32(6000)
	clients := storetest.New(oauthv1.Resource("oauthclients"),
		&oauthv1.OAuthClient{ObjectMeta: metav1.ObjectMeta{Name: "usual"}},
		&oauthv1.OAuthClient{ObjectMeta: metav1.ObjectMeta{Name: "patient"}, AccessTokenInactivityTimeoutSeconds: &own})
	tests := []struct {
		name, client  string
		age, end, min int32 // token's age, timeout before the use, and minimum timeout after it
	}{
		{"just created", "usual", 0, timeout, timeout},
		{"used soon", "usual", 100, timeout, timeout},
		{"used later", "usual", 300, timeout, 900},
		{"of a client with its own timeout", "patient", 3000, 6000, 9000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tokens := storetest.New(oauthv1.Resource("oauthaccesstokens"), &oauthv1.OAuthAccessToken{
				ObjectMeta: metav1.ObjectMeta{Name: "token", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Duration(tt.age) * time.Second))},
				ClientName: tt.client, InactivityTimeoutSeconds: tt.end,
			})
			activity := NewActivity(tokens, &client.Registry{Clients: clients}, func() int32 { return timeout }, func(err error) { t.Error(err) })
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); activity.Run(ctx) }()
			end := func() int32 {
				token, err := tokens.Get(t.Context(), "token")
				if err != nil {
					t.Fatal(err)
				}
				return token.InactivityTimeoutSeconds
			}
			token, err := tokens.Get(t.Context(), "token")
			if err != nil {
				t.Fatal(err)
			}
			activity.Used(token)
			eventually.True(t, "the extended timeout", func() bool { return len(activity.activity) == 0 && end() >= tt.min })
			stop()
			<-done
			if tt.min == tt.end && end() != tt.end {
				t.Errorf("the timeout was extended too early: %d", end())
			}
		})
	}
}

func TestFailedExtensionIsRepeatedAtNextUse(t *testing.T) {
	const timeout, age = 600, 300
	tokens := storetest.New(oauthv1.Resource("oauthaccesstokens"), &oauthv1.OAuthAccessToken{
		ObjectMeta:               metav1.ObjectMeta{Name: "token", CreationTimestamp: metav1.NewTime(time.Now().Add(-age * time.Second))},
		InactivityTimeoutSeconds: timeout,
	})
	stored, err := tokens.Get(t.Context(), "token")
	if err != nil {
		t.Fatal(err)
	}
	failures := make(chan error, 1)
	failed := false
	tokens.Fail = func(string, string) error {
		if failed {
			return nil
		}
		failed = true
		return errors.New("the store cannot be written")
	}
	clients := storetest.New[*oauthv1.OAuthClient](oauthv1.Resource("oauthclients"))
	activity := NewActivity(tokens, &client.Registry{Clients: clients}, func() int32 { return timeout }, func(err error) { failures <- err })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); activity.Run(ctx) }()
	defer func() { stop(); <-done }()
	activity.Used(stored)
	<-failures
	activity.Used(stored)
	eventually.True(t, "the extension after the second use", func() bool {
		token, err := tokens.Get(t.Context(), "token")
		return err == nil && token.InactivityTimeoutSeconds >= age+timeout
	})
}
