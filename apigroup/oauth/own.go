package oauth

import (
	"context"
	"errors"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apiserver"
)

// ownTokens returns the useroauthaccesstokens.oauth.openshift.io resource, with which users list
// and revoke their own access tokens. It excludes tokens whose object name is the token itself
// instead of a hash.
func ownTokens() apiserver.Served {
	return apiserver.Virtual{Plural: "useroauthaccesstokens", New: func(deps apiserver.Deps) (rest.Storage, error) {
		return &own{Unstored: apiserver.Unstored[*oauthv1.UserOAuthAccessToken]{Singular: "useroauthaccesstoken"}, stores: deps.Stores, table: apiserver.Table(tokenColumns())}, nil
	}}
}

type own struct {
	apiserver.Unstored[*oauthv1.UserOAuthAccessToken]
	stores map[schema.GroupResource]*registry.Store
	table  rest.TableConvertor
}

var (
	_ rest.Getter               = &own{}
	_ rest.Lister               = &own{}
	_ rest.Watcher              = &own{}
	_ rest.GracefulDeleter      = &own{}
	_ rest.Scoper               = &own{}
	_ rest.SingularNameProvider = &own{}
)

// NewList creates an empty list.
func (o *own) NewList() runtime.Object { return &oauthv1.UserOAuthAccessTokenList{} }

// ConvertToTable returns a table with the columns of oauthaccesstokens.
func (o *own) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	switch typed := object.(type) {
	case *oauthv1.UserOAuthAccessToken:
		return o.table.ConvertToTable(ctx, (*oauthv1.OAuthAccessToken)(typed), options)
	case *oauthv1.UserOAuthAccessTokenList:
		list := &oauthv1.OAuthAccessTokenList{ListMeta: typed.ListMeta}
		for _, token := range typed.Items {
			list.Items = append(list.Items, oauthv1.OAuthAccessToken(token))
		}
		return o.table.ConvertToTable(ctx, list, options)
	}
	return o.table.ConvertToTable(ctx, object, options)
}

func (o *own) store() *registry.Store { return o.stores[oauthv1.Resource("oauthaccesstokens")] }

// requester returns the request's user. A user without a UID, such as a cluster component that
// watches every resource, has no tokens.
func requester(ctx context.Context) (user.Info, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewForbidden(oauthv1.Resource("useroauthaccesstokens"), "", nil)
	}
	return u, nil
}

// mine reports whether a token is one of the user's tokens and its object name is a hash.
func mine(token *oauthv1.OAuthAccessToken, u user.Info) bool {
	return strings.HasPrefix(token.Name, hashPrefix) && u.GetUID() != "" && token.UserName == u.GetName() && token.UserUID == u.GetUID()
}

func (o *own) find(ctx context.Context, name string) (*oauthv1.OAuthAccessToken, error) {
	notFound := apierrors.NewNotFound(oauthv1.Resource("useroauthaccesstokens"), name)
	u, err := requester(ctx)
	if err != nil {
		return nil, err
	}
	object, err := o.store().Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, notFound
	}
	if err != nil {
		return nil, err
	}
	token, ok := object.(*oauthv1.OAuthAccessToken)
	if !ok || !mine(token, u) {
		return nil, notFound
	}
	return token, nil
}

// Get returns one of the user's tokens.
func (o *own) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	token, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return (*oauthv1.UserOAuthAccessToken)(token), nil
}

// narrowed returns options that select only the user's tokens.
func narrowed(options *internalversion.ListOptions, u user.Info) *internalversion.ListOptions {
	narrow := options.DeepCopy()
	if narrow == nil {
		narrow = &internalversion.ListOptions{}
	}
	of := fields.SelectorFromSet(fields.Set{"userName": u.GetName(), "userUID": u.GetUID()})
	if narrow.FieldSelector != nil {
		of = fields.AndSelectors(narrow.FieldSelector, of)
	}
	narrow.FieldSelector = of
	return narrow
}

// List returns the user's tokens.
func (o *own) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	u, err := requester(ctx)
	if err != nil {
		return nil, err
	}
	all, err := o.store().List(ctx, narrowed(options, u))
	if err != nil {
		return nil, err
	}
	tokens, ok := all.(*oauthv1.OAuthAccessTokenList)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("list access tokens: unexpected type"))
	}
	list := &oauthv1.UserOAuthAccessTokenList{ListMeta: tokens.ListMeta, Items: []oauthv1.UserOAuthAccessToken{}}
	for i := range tokens.Items {
		if mine(&tokens.Items[i], u) {
			list.Items = append(list.Items, oauthv1.UserOAuthAccessToken(tokens.Items[i]))
		}
	}
	return list, nil
}

// Watch returns a stream of change events for the user's tokens.
func (o *own) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	u, err := requester(ctx)
	if err != nil {
		return nil, err
	}
	all, err := o.store().Watch(ctx, narrowed(options, u))
	if err != nil {
		return nil, err
	}
	return watch.Filter(all, func(event watch.Event) (watch.Event, bool) { return visible(event, u) }), nil
}

// visible converts an event for a user, and reports whether the user is allowed to see it. It
// unwraps the object, because the store wraps objects that it sends to several watchers.
func visible(event watch.Event, u user.Info) (watch.Event, bool) {
	if wrapped, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = wrapped.GetObject()
	}
	token, ok := event.Object.(*oauthv1.OAuthAccessToken)
	if !ok {
		return event, event.Type == watch.Error
	}
	event.Object = (*oauthv1.UserOAuthAccessToken)(token)
	return event, event.Type == watch.Bookmark || mine(token, u)
}

// Delete revokes one of the user's tokens.
func (o *own) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if _, err := o.find(ctx, name); err != nil {
		return nil, false, err
	}
	return o.store().Delete(ctx, name, validate, options)
}
