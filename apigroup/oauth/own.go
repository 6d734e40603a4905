package oauth

import (
	"context"
	"errors"
	"strings"

	oauthv1 "github.com/openshift/api/oauth/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
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

// ownTokens is the resource useroauthaccesstokens.oauth.openshift.io: each user sees and revokes their own access tokens. Those whose name is
// the token itself are not shown.
func ownTokens() apiserver.Served {
	return apiserver.Virtual{Plural: "useroauthaccesstokens", New: func(deps apiserver.Deps) (rest.Storage, error) {
		return &own{stores: deps.Stores, table: apiserver.Table(tokenColumns())}, nil
	}}
}

type own struct {
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

// New makes an empty object.
func (o *own) New() runtime.Object { return &oauthv1.UserOAuthAccessToken{} }

// NewList makes an empty list.
func (o *own) NewList() runtime.Object { return &oauthv1.UserOAuthAccessTokenList{} }

// Destroy has nothing to close.
func (o *own) Destroy() {}

// NamespaceScoped says that tokens live in no namespace.
func (o *own) NamespaceScoped() bool { return false }

// GetSingularName is the name of one.
func (o *own) GetSingularName() string { return "useroauthaccesstoken" }

// ConvertToTable prints tokens as the resource of all tokens does.
func (o *own) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	switch shown := object.(type) {
	case *oauthv1.UserOAuthAccessToken:
		return o.table.ConvertToTable(ctx, (*oauthv1.OAuthAccessToken)(shown), options)
	case *oauthv1.UserOAuthAccessTokenList:
		list := &oauthv1.OAuthAccessTokenList{ListMeta: shown.ListMeta}
		for _, one := range shown.Items {
			list.Items = append(list.Items, oauthv1.OAuthAccessToken(one))
		}
		return o.table.ConvertToTable(ctx, list, options)
	}
	return o.table.ConvertToTable(ctx, object, options)
}

func (o *own) store() *registry.Store { return o.stores[oauthv1.Resource("oauthaccesstokens")] }

// asker is the user of a request. One without a UID, such as a component of the cluster that watches every resource, is answered and has no tokens.
func asker(ctx context.Context) (user.Info, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, kerrors.NewForbidden(oauthv1.Resource("useroauthaccesstokens"), "", nil)
	}
	return who, nil
}

// mine tells whether a token is shown to a user.
func mine(token *oauthv1.OAuthAccessToken, who user.Info) bool {
	return strings.HasPrefix(token.Name, hashPrefix) && who.GetUID() != "" && token.UserName == who.GetName() && token.UserUID == who.GetUID()
}

func (o *own) find(ctx context.Context, name string) (*oauthv1.OAuthAccessToken, error) {
	none := kerrors.NewNotFound(oauthv1.Resource("useroauthaccesstokens"), name)
	who, err := asker(ctx)
	if err != nil {
		return nil, err
	}
	found, err := o.store().Get(ctx, name, &metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	token, ok := found.(*oauthv1.OAuthAccessToken)
	if !ok || !mine(token, who) {
		return nil, none
	}
	return token, nil
}

// Get shows one of the user's tokens.
func (o *own) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	token, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return (*oauthv1.UserOAuthAccessToken)(token), nil
}

// narrowed are options that find the user's tokens alone.
func narrowed(options *internalversion.ListOptions, who user.Info) *internalversion.ListOptions {
	narrow := options.DeepCopy()
	if narrow == nil {
		narrow = &internalversion.ListOptions{}
	}
	of := fields.SelectorFromSet(fields.Set{"userName": who.GetName(), "userUID": who.GetUID()})
	if narrow.FieldSelector != nil {
		of = fields.AndSelectors(narrow.FieldSelector, of)
	}
	narrow.FieldSelector = of
	return narrow
}

// List shows the user's tokens.
func (o *own) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	who, err := asker(ctx)
	if err != nil {
		return nil, err
	}
	all, err := o.store().List(ctx, narrowed(options, who))
	if err != nil {
		return nil, err
	}
	found, ok := all.(*oauthv1.OAuthAccessTokenList)
	if !ok {
		return nil, kerrors.NewInternalError(errors.New("list access tokens: another type was found"))
	}
	shown := &oauthv1.UserOAuthAccessTokenList{ListMeta: found.ListMeta, Items: []oauthv1.UserOAuthAccessToken{}}
	for i := range found.Items {
		if mine(&found.Items[i], who) {
			shown.Items = append(shown.Items, oauthv1.UserOAuthAccessToken(found.Items[i]))
		}
	}
	return shown, nil
}

// Watch shows changes of the user's tokens.
func (o *own) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	who, err := asker(ctx)
	if err != nil {
		return nil, err
	}
	all, err := o.store().Watch(ctx, narrowed(options, who))
	if err != nil {
		return nil, err
	}
	return watch.Filter(all, func(event watch.Event) (watch.Event, bool) { return shown(event, who) }), nil
}

// shown is an event as a user may see it, if at all. The store wraps an object that several watchers get.
func shown(event watch.Event, who user.Info) (watch.Event, bool) {
	if wrapped, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = wrapped.GetObject()
	}
	token, ok := event.Object.(*oauthv1.OAuthAccessToken)
	if !ok {
		return event, event.Type == watch.Error
	}
	event.Object = (*oauthv1.UserOAuthAccessToken)(token)
	return event, event.Type == watch.Bookmark || mine(token, who)
}

// Delete revokes one of the user's tokens.
func (o *own) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if _, err := o.find(ctx, name); err != nil {
		return nil, false, err
	}
	return o.store().Delete(ctx, name, validate, options)
}
