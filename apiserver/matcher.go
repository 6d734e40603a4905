package apiserver

import (
	"reflect"
	"regexp"
	"unsafe"

	"github.com/emicklei/go-restful/v3"
)

// ShareMatchers makes routes with equal paths share one regular expression. go-restful compiles the
// path of each of the three thousand routes, although most paths have several routes and Kubernetes
// selects a request's route without these expressions. Together, they take a tenth of the API
// server's heap. ShareMatchers must be called before the server serves requests. It returns the
// number of expressions that routes no longer refer to.
func ShareMatchers(services []*restful.WebService) (removed int) {
	shared := map[string]*regexp.Regexp{}
	for _, service := range services {
		for _, route := range service.Routes() {
			matcher := matcherOf(&route)
			if matcher == nil || *matcher == nil {
				continue
			}
			first, exists := shared[(*matcher).String()]
			switch {
			case !exists:
				shared[(*matcher).String()] = *matcher
			case first != *matcher:
				*matcher, removed = first, removed+1
			}
		}
	}
	return removed
}

// matcherOf returns the address of a route's regular expression, which copies of the route share,
// or nil if this version of go-restful stores the expression differently.
func matcherOf(route *restful.Route) **regexp.Regexp {
	path := reflect.ValueOf(route).Elem().FieldByName("pathExpr")
	if path.Kind() != reflect.Pointer || path.IsNil() {
		return nil
	}
	matcher := path.Elem().FieldByName("Matcher")
	if !matcher.IsValid() || matcher.Type() != reflect.TypeFor[*regexp.Regexp]() {
		return nil
	}
	return (**regexp.Regexp)(unsafe.Pointer(matcher.UnsafeAddr()))
}
