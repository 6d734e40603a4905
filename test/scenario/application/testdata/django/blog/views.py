from django.db import connection
from django.shortcuts import redirect, render

from .models import Article


def articles(request):
    if request.method == "POST":
        Article.objects.create(title=request.POST["title"])
        return redirect("/")
    return render(request, "articles.html", {"articles": Article.objects.order_by("id"), "vendor": connection.vendor})
