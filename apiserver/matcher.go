package apiserver

import (
	"reflect"
	"regexp"
	"unsafe"

	"github.com/emicklei/go-restful/v3"
)

// unusedMatcher replaces the routes' regular expressions.
var unusedMatcher = regexp.MustCompile("^$")

// ReleaseMatchers releases the regular expressions of routes. go-restful compiles the path of each
// of the three thousand routes. However, the router that Kubernetes uses, restful.CurlyRouter,
// selects a request's route without these expressions. Together, they take a tenth of the API
// server's heap. ReleaseMatchers must be called before the server serves requests. It returns the
// number of routes.
func ReleaseMatchers(services []*restful.WebService) (released int) {
	for _, service := range services {
		for _, route := range service.Routes() {
			if matcher := matcherOf(&route); matcher != nil {
				*matcher, released = unusedMatcher, released+1
			}
		}
	}
	return released
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
