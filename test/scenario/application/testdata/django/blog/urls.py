from django.http import HttpResponse
from django.urls import path

from . import views

urlpatterns = [path("", views.articles), path("health", lambda request: HttpResponse("ok"))]
